/**
 * Call data of a request: its API key, id, trace, deadline, and a signal that aborts when the
 * client disconnects. Core checks the key. A request that fails before the call to core has its key
 * checked first, so that a client without a key only ever receives 401 (proto/spec/errors.md 5).
 * The key of a request with a large body is checked before the body is read. A login of the console
 * counts as a key, when its request comes from the console's own pages. A request for a named
 * project (named-project.ts) goes on only when core accepts that name with its credential. The
 * routes of a shared session take the token of its link instead, in a header, and nothing else; no
 * other route does.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonValue } from '@bufbuild/protobuf';
import type { Context, Middleware } from 'koa';
import { isTraceparent } from '../../proto/common/tracing.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { BODY_UNKEYED_MAX_BYTES, REQUEST_TIMEOUT_MS } from '../config.ts';
import { type ConsolePlace, checkSameOrigin, loginOf, setCookie } from './console-cookie.ts';

/** Published clients send X-BB-API-Key. Source: proto/spec/rest.md 1. */
const KEY_HEADERS = ['x-svc-api-key', 'x-bb-api-key'] as const;
/** RFC 6750 2.1; core reads it from the metadata `authorization`. */
const BEARER = /^Bearer[ \t]+(\S+)[ \t]*$/i;
/** Printable ASCII; anything else cannot be a key and must not reach gRPC metadata. */
const KEY = /^[\x21-\x7e]{1,4096}$/;
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** State that the middlewares of one request share. */
export type State = {
  requestId: string;
  /** The trace of the request's own span, when tracing is on; else the client's. */
  traceparent?: string | undefined;
  /**
   * Call options for core; `timeoutMs` replaces the default deadline of long calls. Only where a
   * key is required.
   */
  call?: (timeoutMs?: number) => CallOptions;
  /** The login of the console that the request counts with. */
  login?: string;
  /** The project that an operator login names. */
  namedProject?: string;
  /** The answer of a generated route, before it is written. */
  answer?: JsonValue;
  /** Of a request with a large body: the project of its key. */
  projectId?: string;
};

/** The client's request id when it is valid, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

/** Requests below these paths require a key; others do not. */
const KEYED = ['/v1', '/console/api/v1', '/mcp'];
/** Not by a login: only programs send requests there. */
const KEY_ONLY = '/mcp';
/** Requests below it require the token of a link to one session. */
export const SHARED = '/console/api/v1/shared';
const SHARE_HEADER = 'x-tabern-share';
const isBelow = (path: string, base: string) => `${path}/`.startsWith(`${base}/`);

type AuthDeps = ConsolePlace & { clients: Clients; hasConsole: boolean; gatewayToken: string };

export function auth({
  clients,
  hasConsole,
  gatewayToken,
  publicUrl,
}: AuthDeps): Middleware<State> {
  const place = { publicUrl };
  return async (ctx, next) => {
    if (!KEYED.some((base) => isBelow(ctx.path, base))) return next();
    const isShared = hasConsole && isBelow(ctx.path, SHARED);
    const takesLogin = hasConsole && !isShared && !isBelow(ctx.path, KEY_ONLY);
    const isKeyless = takesLogin && !hasKey(ctx.req);
    const login = isKeyless ? loginOf(ctx.req, place) : undefined;
    if (login !== undefined) {
      checkSameOrigin(ctx.req, place);
      ctx.state.login = login;
    }
    const metadata = isShared
      ? shareMetadata(ctx.req, ctx.state)
      : callMetadata(ctx.req, ctx.state);
    const check = (options: CallOptions) =>
      isShared
        ? clients.consoleShares.getSharedSession({}, options)
        : clients.projects.listProjects({}, options);
    const deadline = performance.now() + REQUEST_TIMEOUT_MS;
    const signal = goneSignal(ctx.res);
    let isChecked = false;
    ctx.state.call = (timeoutMs) => {
      isChecked = true;
      return { metadata, signal, timeoutMs: timeoutMs ?? leftOf(deadline) };
    };
    const { namedProject } = ctx.state;
    if (namedProject !== undefined) {
      await clients.projects.getProject({ id: namedProject }, ctx.state.call());
    }
    // Without a key, only a small body is read; each project has a share of the memory for larger
    // ones.
    if (!isShared && isLarge(ctx.req)) {
      const { projects } = await clients.projects.listProjects({}, ctx.state.call());
      ctx.state.projectId = projects[0]?.id ?? '';
    }
    try {
      await next();
      if (login !== undefined && ctx.path.startsWith('/console/')) {
        ctx.set('set-cookie', setCookie(ctx.req, login, place));
      }
    } catch (error) {
      if (isChecked || !(error instanceof Fault) || signal.aborted) throw error;
      if (login === undefined) await check(ctx.state.call());
      else {
        const call = callAsGateway(ctx as Context, gatewayToken)(REQUEST_TIMEOUT_MS);
        await clients.consoleLogins.getConsoleLogin({ text: login, use: false }, call);
      }
      throw error;
    }
  };
}

/** Call options of a request with the token of a link. Throws URL_SIGNATURE_INVALID without one. */
function shareMetadata(
  request: IncomingMessage,
  { requestId, traceparent = traceparentOf(request) }: Credentials,
): Record<string, string> {
  const [token = '', ...more] = request.headersDistinct[SHARE_HEADER] ?? [];
  if (!KEY.test(token) || more.length > 0) {
    throw new Fault('URL_SIGNATURE_INVALID', 'This link is not valid. Copy all of it.');
  }
  return {
    'x-console-share': token,
    'x-request-id': requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

type Credentials = {
  requestId: string;
  /** A key that is not in a header. */
  key?: string | undefined;
  login?: string | undefined;
  namedProject?: string | undefined;
  traceparent?: string | undefined;
};

/** Call options of a request. */
export function callMetadata(
  request: IncomingMessage,
  { requestId, key, login, namedProject, traceparent = traceparentOf(request) }: Credentials,
): Record<string, string> {
  const keyed = () => ({
    'x-svc-api-key': key === undefined ? keyOf(request) : checkedKey(key),
  });
  return {
    ...(login === undefined ? keyed() : { 'x-console-login': login, ...addressOf(request) }),
    ...(namedProject === undefined ? {} : { 'x-console-project': namedProject }),
    'x-request-id': requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** For the audit: the address of the connection. */
function addressOf({ socket }: IncomingMessage): Record<string, string> {
  return { 'x-console-address': (socket.remoteAddress ?? '').replace(/^::ffff:/, '') };
}

/** The client's trace, when it is valid. */
export function traceparentOf({ headers }: IncomingMessage): string | undefined {
  const { traceparent } = headers;
  return isTraceparent(traceparent) ? traceparent : undefined;
}

/** Whether a header has a key, valid or not. */
function hasKey({ headers }: IncomingMessage): boolean {
  return KEY_HEADERS.some((name) => name in headers) || BEARER.test(headers.authorization ?? '');
}

/**
 * The API key. Ours: several key headers are accepted when they agree; a repeated header is
 * refused. An Authorization header of another scheme is for a proxy and is ignored.
 */
function keyOf(request: IncomingMessage): string {
  const bearers = (request.headersDistinct['authorization'] ?? []).flatMap(
    (text) => BEARER.exec(text)?.[1] ?? [],
  );
  const given = [...KEY_HEADERS.map((name) => request.headersDistinct[name] ?? []), bearers];
  const keys = new Set(given.flat());
  const [key] = keys;
  if (!key || keys.size > 1 || given.some((values) => values.length > 1)) {
    throw new Fault('API_KEY_MISSING', 'Missing API key. Send it in the X-SVC-API-Key header.');
  }
  return checkedKey(key);
}

function checkedKey(key: string): string {
  if (!KEY.test(key)) throw new Fault('API_KEY_INVALID', 'Invalid API key.');
  return key;
}

/** Calls of a signed URL: core verifies the URL, and the call has the gateway's token. */
export function callAsGateway(ctx: Context, gatewayToken: string) {
  const authorization = `Bearer ${gatewayToken}`;
  const metadata = { authorization, 'x-request-id': ctx.state['requestId'] };
  const signal = goneSignal(ctx.res);
  return (timeoutMs: number): CallOptions => ({ metadata, signal, timeoutMs });
}

function isLarge({ headers }: IncomingMessage): boolean {
  const length = Number(headers['content-length'] ?? 0);
  return headers['transfer-encoding'] !== undefined || length > BODY_UNKEYED_MAX_BYTES;
}

/** Aborts when the connection closes before the answer is sent. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** In whole milliseconds, at least one. */
function leftOf(deadline: number): number {
  return Math.max(1, Math.floor(deadline - performance.now()));
}
