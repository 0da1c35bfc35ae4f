/**
 * The session server: gateways reach this runner's sessions here. Requests are authorised by the
 * session's signing key alone; core decides who gets one. Each route takes ?signingKey=; upgrades
 * also take &apiKeyId=, the public part of the API key whose revocation closes them. Those of a
 * relay take &resume= and &received= (proto/spec/resume.md).
 *   upgrade /connect, /   the session's relay
 *   upgrade /view         its live view (../live-view/live-view.ts); &target=<target id>, or the
 *                         active page; &until=<ms since 1970>, when it expires;
 *                         &handoff=<id>, the handoff with which it ends
 *   GET /targets          its open pages, as JSON
 *   GET /state            its active page, clients and memory, as JSON: SessionState
 *   GET /thumbnail        a small JPEG of its active page (../live-view/thumbnail.ts)
 *   PUT /uploads/<name>   a file for its pages; answered when they can read it
 *   upgrade /devtools/page/<target id>   the relay, for that target alone
 *   GET /json/...         as in Chrome (discovery.ts)
 */
import { chmod } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../../proto/common/log.ts';
import { asFault, Fault } from '../../../proto/rpc/errors.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import type { Chrome } from '../../browser/launch.ts';
import type { SessionListen } from '../../config.ts';
import type { Thumbnail } from '../live-view/thumbnail.ts';
import { answerRefusal, refuse } from '../refusal.ts';
import type { Relay } from '../relay/relay.ts';
import type { PutUpload, ServeView } from '../session.ts';
import { discoveryOf } from './discovery.ts';
import {
  type Exchange,
  type KeyAuthenticatedServer,
  openKeyAuthenticatedServer,
  type Upgrade,
  type UpgradeHandler,
} from './key-authenticated-server.ts';
import { openRevocations, type Revocations } from './revocations.ts';

/** The part of a session that the server uses. */
export type RegisteredSession = {
  relay: UpgradeHandler & Pick<Relay, 'clients' | 'revoke'>;
  chrome: Pick<Chrome, 'pipe' | 'memoryBytes'>;
  view?: ServeView | undefined;
  putUpload?: PutUpload | undefined;
  thumbnail?: Thumbnail | undefined;
};

/** Ours: what a list shows. They are the page's own, and may have megabytes. */
const TITLE_MAX_CHARS = 256;
const URL_MAX_CHARS = 2_048;

/** What a list shows of a running session; title and address are those of its active page. */
type SessionState = {
  title: string;
  url: string;
  /** Connected ones. */
  clients: number;
  /** Of all processes of its Chrome; absent where nothing measures it. */
  memoryBytes: number | undefined;
};

/** One open page, as reported by GET /targets. */
export type Target = {
  id: string;
  url: string;
  title: string;
  /** Empty: Chrome does not report it. */
  faviconUrl: string;
  /** The page opened or brought to the front last. */
  active: boolean;
};

/** `serve` takes sockets that a gateway on this machine accepted and handed off. */
export type SessionServer = KeyAuthenticatedServer<RegisteredSession> & {
  /** The address that gateways connect to, as in RegisterRunner. */
  address: string;
  /** Closes the connections of these API keys, and those that wait to be resumed. */
  revoke: Revocations['revoke'];
};

export async function openSessionServer(options: {
  /** Path of the socket file, or a network address to listen on. */
  where: string | SessionListen;
  log: Log;
}): Promise<SessionServer> {
  const { where, log } = options;
  const place = typeof where === 'string' ? where : { ...where, log };
  const revocations = openRevocations();
  const server = await openKeyAuthenticatedServer<RegisteredSession>(place, {
    upgrade(session, upgrade) {
      const keyId = upgrade.url.searchParams.get('apiKeyId');
      const isGood = keyId === null || revocations.track(keyId, upgrade.socket);
      if (isGood) serveUpgrade(session, upgrade);
      else refuse(upgrade.socket, 401, 'Invalid signing key.');
    },
    answer: (session, exchange) => answer(session, exchange, log),
    version,
    // core authorised the request just now, so the session has ended since
    unauthorized: { statusCode: 410, message: 'The session has ended.' },
  });
  if (typeof where === 'string') await chmod(where, 0o600);
  const address = typeof where === 'string' ? `unix:${where}` : addressOf(where);
  const sessions = new Set<RegisteredSession>();
  return {
    ...server,
    address,
    register(signingKey, session) {
      const registered = server.register(signingKey, session);
      sessions.add(session);
      return {
        [Symbol.dispose]() {
          sessions.delete(session);
          registered[Symbol.dispose]();
        },
      };
    },
    revoke(keyIds) {
      revocations.revoke(keyIds);
      // a connection that waits to be resumed has no socket
      for (const { relay } of sessions) relay.revoke(keyIds);
    },
  };
}

function addressOf({ host, port, tls }: SessionListen): string {
  const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return tls === undefined ? place : `tls:${place}`;
}

function serveUpgrade(
  { relay, view }: RegisteredSession,
  { request, socket, head, url }: Upgrade,
): void {
  const { pathname, searchParams } = url;
  const [, target] = /^\/devtools\/page\/([\w-]+)$/.exec(pathname) ?? [];
  if (target !== undefined) relay.serve(request, socket, head, target);
  else if (pathname === '/connect' || pathname === '/') relay.serve(request, socket, head);
  else if (pathname === '/view' && view) {
    view({ request, socket, head, target: searchParams.get('target') ?? undefined });
  } else refuse(socket, 404, 'There is no such route.');
}

function answer(
  session: RegisteredSession,
  { request, response, url }: Exchange,
  log: Log,
): boolean {
  const { putUpload } = session;
  const act = routeOf();
  if (act === undefined) return false;
  act().then(
    (body) => send(response, body),
    (error: unknown) => fail(response, error, log),
  );
  return true;

  function routeOf(): (() => Promise<unknown>) | undefined {
    const discovery = discoveryOf(request.method ?? '', url);
    if (discovery) return () => discovery(session.chrome);
    if (request.method === 'GET' && url.pathname === '/targets') return () => targets(session);
    if (request.method === 'GET' && url.pathname === '/state') return () => stateOf(session);
    if (request.method === 'GET' && url.pathname === '/thumbnail') return () => picture(session);
    const [, name] = /^\/uploads\/([^/]+)$/.exec(url.pathname) ?? [];
    if (request.method !== 'PUT' || name === undefined || !putUpload) return undefined;
    return () => upload(putUpload, name, request);
  }
}

type Version = { product: string; protocolVersion: string; userAgent: string; jsVersion: string };

/** The fields of Chrome's own /json/version. */
async function version({ chrome }: RegisteredSession): Promise<Record<string, string>> {
  const found = (await chrome.pipe.call('Browser.getVersion')) as Version;
  return {
    Browser: found.product,
    'Protocol-Version': found.protocolVersion,
    'User-Agent': found.userAgent,
    'V8-Version': found.jsVersion,
  };
}

async function targets({ chrome }: RegisteredSession): Promise<Target[]> {
  const pages = await openPages(chrome);
  await pages.refresh();
  return pages.open().map(({ targetId: id, url, title }) => {
    return { id, url, title, faviconUrl: '', active: id === pages.active?.targetId };
  });
}

async function stateOf({ chrome, relay }: RegisteredSession): Promise<SessionState> {
  const pages = await openPages(chrome);
  await pages.refresh();
  const { title = '', url = '' } = pages.active ?? {};
  return {
    title: title.slice(0, TITLE_MAX_CHARS),
    url: url.slice(0, URL_MAX_CHARS),
    clients: relay.clients,
    memoryBytes: chrome.memoryBytes(),
  };
}

async function picture({ thumbnail }: RegisteredSession): Promise<Buffer> {
  const jpeg = await thumbnail?.();
  if (jpeg !== undefined) return jpeg;
  throw new Fault('ROUTE_NOT_FOUND', 'The session has no picture yet.');
}

async function upload(
  putUpload: PutUpload,
  encoded: string,
  request: IncomingMessage,
): Promise<object> {
  let name: string;
  try {
    name = decodeURIComponent(encoded);
  } catch (cause) {
    throw new Fault('MALFORMED_REQUEST', 'The file name is not valid.', {}, cause);
  }
  await putUpload(name, request);
  return {};
}

function fail(response: ServerResponse, error: unknown, log: Log): void {
  const fault = asFault(error);
  if (fault !== error) log.error({ err: error }, 'a request to the session server failed');
  answerRefusal(response, fault.row.http, fault.message);
}

function send(response: ServerResponse, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
}
