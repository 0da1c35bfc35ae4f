/**
 * Chrome's DevTools HTTP endpoints for a session, at the root and below /connect: the version with
 * the WebSocket URL, the targets, and their actions. Sessions are selected as on the upgrade
 * (gateway/sessions/credentials.ts).
 */
import type Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { goneSignal, type State } from '../../http/auth.ts';
import { baseUrlOf } from '../../http/base-url.ts';
import { websocketUrl } from '../../rest/links.ts';
import { credentialOf, presentedBy, targetOf } from '../../sessions/credentials.ts';
import {
  bytesFromSessionServer,
  callSessionServer,
  locator,
} from '../../sessions/runner-client.ts';
import type { RunnerTrust } from '../../sessions/runner-trust.ts';

/** Path prefixes. Drivers append the paths to their URL, which may end in /connect. */
export const DISCOVERY_BASES = ['', '/connect'] as const;

type Target = { id: string };
type SessionServer = {
  /** Sends a request to the session server. */
  request(path: string, method?: 'GET' | 'PUT'): Promise<unknown>;
  bytes(path: string): Promise<Buffer>;
  /** The WebSocket URL of that path, with the presented credential. */
  socket(path: string): string;
};

export function addDiscovery(
  router: Router<State>,
  options: {
    clients: Pick<Clients, 'sessions'>;
    gatewayToken: string;
    runnerTrust?: RunnerTrust | undefined;
    publicUrl: string | undefined;
  },
): void {
  const { clients, publicUrl } = options;
  const locate = locator(options);
  const answering = (
    answer: (ctx: Context, server: SessionServer) => Promise<unknown>,
  ): Middleware<State> => {
    return async (ctx) => {
      const presented = presentedBy(ctx.req, targetOf(ctx.req), ctx.state.requestId);
      // these requests start no session
      if (presented.kind === 'new') throw invalidField('sessionId', 'must be given.');
      const signal = goneSignal(ctx.res);
      const credential = await credentialOf(presented, clients, signal);
      const place = await locate(credential, signal);
      const address = websocketUrl(publicUrl ?? baseUrlOf(ctx));
      // the presented credential, which ends with its API key; the server's own token does not
      const key = encodeURIComponent(credential.value);
      ctx.body = await answer(ctx, {
        request: (path, method = 'GET') => callSessionServer(place, { method, path, signal }),
        bytes: (path) => bytesFromSessionServer(place, { method: 'GET', path, signal }),
        socket: (path) => `${address}${path}?signingKey=${key}`,
      });
    };
  };
  const shown = (target: unknown, { socket }: SessionServer): object => {
    const path = `/devtools/page/${(target as Target).id}`;
    return { ...Object(target), webSocketDebuggerUrl: socket(path) };
  };
  const version = answering(async (_, { request, socket }) => {
    const webSocketDebuggerUrl = socket('/connect');
    return { ...Object(await request('/json/version')), webSocketDebuggerUrl };
  });
  const list = answering(async (_, server) => {
    return ((await server.request('/json/list')) as unknown[]).map((target) =>
      shown(target, server),
    );
  });
  const open = answering(async (ctx, server) => {
    const path = `/json/new?url=${encodeURIComponent(newUrlOf(targetOf(ctx.req)))}`;
    return shown(await server.request(path, 'PUT'), server);
  });
  const act = (name: 'activate' | 'close', done: string): Middleware<State> => {
    return answering(async (ctx, { request }) => {
      await request(`/json/${name}/${encodeURIComponent(String(ctx['params'].id))}`);
      return done;
    });
  };
  for (const base of DISCOVERY_BASES) {
    // Playwright requests the path with a trailing slash. Source: proto/spec/sessions.md 4
    router.get([`${base}/json/version`, `${base}/json/version/`], version);
    router.get([`${base}/json`, `${base}/json/list`], list);
    router.put(`${base}/json/new`, open);
    router.get(`${base}/json/activate/:id`, act('activate', 'Target activated'));
    router.get(`${base}/json/close/:id`, act('close', 'Target is closing'));
    router.get(
      `${base}/json/protocol`,
      answering((ctx, { bytes }) => {
        ctx.type = 'application/json; charset=utf-8';
        return bytes('/json/protocol'); // 550 KB that the gateway need not parse
      }),
    );
  }
}

/** `?url=`, or as in Chrome the query itself, before the parameters that select the session. */
function newUrlOf({ search, searchParams }: URL): string {
  const named = searchParams.get('url');
  if (named !== null) return named;
  const [text = ''] = search.slice(1).split(/[?&]?(?:signingKey|apiKey|sessionId)=/);
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidField('url', 'must be a URL.');
  }
}
