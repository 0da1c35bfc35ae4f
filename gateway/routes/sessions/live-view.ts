/**
 * The live view's page, which needs no API key: its address carries a token. The page asks
 * /live/status why a connection was refused, as browsers do not tell it. And the open tabs in the
 * answer of GET /v1/sessions/{id}/debug, which core does not know: the session's runner is asked.
 */
import { readFileSync } from 'node:fs';
import type Router from '@koa/router';
import type { Context } from 'koa';
import type {
  GetLiveViewResponse,
  GetLiveViewResponse_Page,
} from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { askDoor, type Locate, locator, type Place } from '../../sessions/runner-client.ts';

/** Ours: a runner that has not told its tabs by then tells none. */
const TABS_TIMEOUT_MS = 2_000;
/** A URI, as clients expect one: an empty icon. Chrome names none without drawing a tab. */
const NO_ICON = 'data:,';

const FILES = {
  'viewer.css': 'text/css; charset=utf-8',
  'viewer.js': 'text/javascript; charset=utf-8',
  'connection.js': 'text/javascript; charset=utf-8',
  'dialog.js': 'text/javascript; charset=utf-8',
  'frame.js': 'text/javascript; charset=utf-8',
  'keyboard.js': 'text/javascript; charset=utf-8',
  'pointer.js': 'text/javascript; charset=utf-8',
  'screen.js': 'text/javascript; charset=utf-8',
} as const;

/**
 * Anybody may frame it, also sandboxed without an origin, for which its own files are another's:
 * hence the second header. Nothing leads its token out.
 */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    'frame-ancestors *',
  ].join('; '),
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
} as const;

type Options = { clients: Clients; gatewayToken: string };

export function addLiveView(router: Router<State>, options: Options): void {
  const locate = locator(options);
  const page = read('index.html');
  const files = new Map(
    Object.entries(FILES).map(([name, type]) => [name, { type, text: read(name) }]),
  );
  router.get('/live', async (ctx) => {
    ctx.set(HEADERS);
    ctx.vary('accept');
    const fault = await refusalOf(ctx, locate);
    if (fault && ctx.accepts('html', 'json') === 'json') throw fault;
    // The page tells what is wrong, and the window around it.
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
    const file = files.get(ctx.params['file'] ?? '');
    if (!file) throw new Fault('ROUTE_NOT_FOUND', `Route ${ctx.method} ${ctx.path} not found.`);
    ctx.set(HEADERS);
    ctx.type = file.type;
    ctx.body = file.text;
  });
}

/** The same clients; an answer of GetLiveView has its pages. */
export function withTabs({ clients, gatewayToken }: Options): Clients {
  const { sessions } = clients;
  const locate = locator({ clients, gatewayToken });
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

/** None when the runner cannot be asked: the links are good all the same. */
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
    return pagesOf(await askDoor(place, { method: 'GET', path: '/targets', signal }), view);
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

async function refusalOf(ctx: Context, locate: Locate): Promise<Fault | undefined> {
  try {
    await placeOf(ctx, locate);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

function placeOf(ctx: Context, locate: Locate): Promise<Place> {
  const value = new URLSearchParams(ctx.querystring).get('token') ?? '';
  return locate({ $case: 'viewToken', value }, goneSignal(ctx.res));
}

function read(name: string): string {
  return readFileSync(new URL(`../../web/live/${name}`, import.meta.url), 'utf8');
}
