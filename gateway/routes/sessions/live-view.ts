/**
 * The page of a live view, whose URL contains a token, and /live/status with the reason of a
 * refused connection, which browsers hide. The open tabs in GET /v1/sessions/{id}/debug are those
 * of the session's runner, since core does not know them.
 */
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type Router from '@koa/router';
import type { Context } from 'koa';
import type {
  GetLiveViewResponse,
  GetLiveViewResponse_Page,
} from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import {
  callSessionServer,
  type Locate,
  locator,
  type Place,
} from '../../sessions/runner-client.ts';
import type { RunnerTrust } from '../../sessions/runner-trust.ts';
import { pageHeaders, routeNotFound } from '../pages.ts';

/** Ours: without an answer of the runner by then, no tabs are listed. */
const TABS_TIMEOUT_MS = 2_000;
/** An empty icon as a URI, which clients expect. Chrome reports none without drawing a tab. */
const NO_ICON = 'data:,';

const FILES = [
  ...['viewer.css', 'viewer.js', 'connection.js', 'dialog.js', 'frame.js', 'handoff.js'],
  ...['keyboard.js', 'pointer.js', 'screen.js'],
];

/**
 * Any site may embed the page, also sandboxed without an origin. Its own files then have another
 * origin, which the last two headers allow.
 */
const HEADERS = {
  ...pageHeaders({ images: 'data:', ancestors: '*' }),
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
};

type Options = {
  clients: Clients;
  gatewayToken: string;
  runnerTrust?: RunnerTrust | undefined;
};

export function addLiveView(router: Router<State>, options: Options): void {
  const locate = locator(options);
  const page = read('index.html');
  const files = new Map(FILES.map((name) => [name, read(name)]));
  router.get('/live', async (ctx) => {
    ctx.set(HEADERS);
    ctx.vary('accept');
    const fault = await placeOf(ctx, locate).then(() => undefined, asRefusal);
    if (fault && ctx.accepts('html', 'json') === 'json') throw fault;
    // The page reports errors to its user and to the embedding window.
    ctx.status = fault?.row.http ?? 200;
    ctx.type = 'html';
    ctx.body = page;
  });
  router.get('/live/status', async (ctx) => {
    ctx.set(HEADERS);
    const { expiresAt } = await placeOf(ctx, locate);
    ctx.body = { status: 'RUNNING', expiresAt };
  });
  router.get('/live/:file', (ctx) => {
    const { file = '' } = ctx.params;
    const text = files.get(file);
    if (text === undefined) throw routeNotFound(ctx);
    ctx.set(HEADERS);
    ctx.type = extname(file);
    ctx.body = text;
  });
}

/** Wraps the clients: an answer of GetLiveView also contains its pages. */
export function withTabs(options: Options): Clients {
  const { clients } = options;
  const { sessions } = clients;
  const locate = locator(options);
  return {
    ...clients,
    sessions: {
      ...sessions,
      async getLiveView(request, options) {
        const view = await sessions.getLiveView(request, options);
        return { ...view, pages: await tabsOf(view, locate, options?.signal) };
      },
    },
  };
}

/** Empty when the runner is unreachable: the links work without them. */
async function tabsOf(
  view: GetLiveViewResponse,
  locate: Locate,
  gone: AbortSignal | undefined,
): Promise<GetLiveViewResponse_Page[]> {
  const late = AbortSignal.timeout(TABS_TIMEOUT_MS);
  const signal = gone ? AbortSignal.any([gone, late]) : late;
  const value = new URLSearchParams(view.debuggerUrl.split('?')[1]).get('token') ?? '';
  try {
    const place = await locate({ $case: 'viewToken', value }, signal);
    const targets = await callSessionServer(place, { method: 'GET', path: '/targets', signal });
    return pagesOf(targets, view);
  } catch (error) {
    if (error instanceof Fault || signal.aborted) return [];
    throw error;
  }
}

function pagesOf(targets: unknown, view: GetLiveViewResponse): GetLiveViewResponse_Page[] {
  if (!Array.isArray(targets)) return [];
  return targets.map((one: Record<string, unknown>) => {
    const id = String(one['id']);
    const page = `&page=${encodeURIComponent(id)}`;
    return {
      id,
      url: String(one['url']),
      title: String(one['title']),
      faviconUrl: String(one['faviconUrl'] || NO_ICON),
      debuggerUrl: view.debuggerUrl + page,
      debuggerFullscreenUrl: view.debuggerFullscreenUrl + page,
    };
  });
}

function asRefusal(error: unknown): Fault {
  if (error instanceof Fault) return error;
  throw error;
}

function placeOf(ctx: Context, locate: Locate): Promise<Place> {
  const value = new URLSearchParams(ctx.querystring).get('token') ?? '';
  return locate({ $case: 'viewToken', value }, goneSignal(ctx.res));
}

function read(name: string): string {
  return readFileSync(new URL(`../../web/live/${name}`, import.meta.url), 'utf8');
}
