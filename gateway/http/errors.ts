/**
 * Failures on their way out: every non-2xx answer is exactly {statusCode, error, message}, by the
 * table of proto/rpc/errors.ts. A Fault's message reaches the client; whatever else was thrown is
 * "unexpected" outside and whole in the log, once.
 */
import { type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import type { Log } from '../../proto/common/log.ts';
import { asFault, type Facts, Fault } from '../../proto/rpc/errors.ts';

/**
 * What every answer carries: nothing of ours is cached, sniffed or framed. Source:
 * proto/spec/rest.md 6.
 */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const;

/**
 * Statuses that the published SDK tries again unless `x-should-retry` says no. Source:
 * proto/spec/rest.md 3.
 */
const RETRIED_BY_CLIENTS = (status: number) => status === 408 || status === 409 || status >= 429;
/**
 * In seconds: published clients obey without a limit of their own. Source: proto/spec/rest.md 3.
 */
const RETRY_AFTER_MAX_S = 60;
/**
 * How long a connection that was answered after malformed HTTP may still send before it is cut.
 * Ours.
 */
const FAREWELL_MS = 1_000;

type Answer = { status: number; headers: OutgoingHttpHeaders; body: string };

/**
 * The Fault as an HTTP answer. `method` decides whether a passed deadline may be tried again: a GET
 * changes nothing.
 */
export function answerOf(fault: Fault, method: string): Answer {
  const { http: status, retry, retryAfterS } = fault.row;
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json; charset=utf-8' };
  if (status === 401) headers['www-authenticate'] = 'ApiKey realm="tabern"';
  if (typeof fault.facts['allow'] === 'string') headers['allow'] = fault.facts['allow'];
  if (status === 426) Object.assign(headers, { upgrade: 'websocket', connection: 'upgrade' });
  // The rest of a request that is too slow is not waited for.
  if (status === 408) headers['connection'] = 'close';
  const waitS = Number(fault.facts['retryAfterS'] ?? retryAfterS ?? 1);
  if (retry === 'yes') headers['retry-after'] = String(Math.min(waitS, RETRY_AFTER_MAX_S));
  if (status === 429) Object.assign(headers, rateHeaders(fault.facts, waitS));
  const isRepeatable = fault.facts['isRepeatable'] === 'true'; // its idempotency key makes it so
  const mayRetry = isRepeatable || (fault.reason === 'DEADLINE' ? isSafe(method) : retryOf(retry));
  if (mayRetry !== undefined && RETRIED_BY_CLIENTS(status)) {
    headers['x-should-retry'] = String(mayRetry);
  }
  const error = STATUS_CODES[status] ?? 'Client Closed Request';
  return {
    status,
    headers,
    body: JSON.stringify({ statusCode: status, error, message: fault.message }),
  };
}

/**
 * What a limit's Fault knows of it. Over gRPC facts arrive as text. Source: proto/spec/rest.md 4.
 */
function rateHeaders(facts: Facts, resetS: number): OutgoingHttpHeaders {
  const limit = Number(facts['limit']);
  const left = limit - Number(facts['current']);
  if (Number.isNaN(left)) return {};
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(Math.max(0, left)),
    'x-ratelimit-reset': String(resetS),
  };
}

/**
 * The outermost middleware but for the request's id: turns what is thrown below it into an answer.
 */
export function errors(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const fault = asFault(error);
      if (fault !== error) log.error({ requestId: ctx.state['requestId'], err: error }, 'bug');
      const { status, headers, body } = answerOf(fault, ctx.method);
      ctx.status = status;
      ctx.set(headers as Record<string, string>);
      ctx.body = body;
    }
  };
}

/**
 * Answers what never became a request: malformed HTTP, headers too large or too slow. At most one
 * answer for one request: when one has begun on this connection, the connection is cut instead.
 */
export function clientErrors(inFlight: WeakMap<Socket, ServerResponse>, newId: () => string) {
  const answered = new WeakSet<Socket>();
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (answered.has(socket)) return;
    answered.add(socket);
    const begun = inFlight.get(socket)?.headersSent ?? false;
    if (error.code === 'ECONNRESET' || !socket.writable || begun) {
      socket.destroy();
      return;
    }
    socket.end(rawAnswer(parserFault(error.code), newId()));
    // Read on for a moment: closing over unread bytes resets the connection, and the client may
    // lose the answer.
    socket.resume();
    const cut = setTimeout(() => socket.destroy(), FAREWELL_MS);
    socket.once('close', () => clearTimeout(cut));
  };
}

/** A whole HTTP/1.1 answer as text, for connections that no ServerResponse belongs to. */
export function rawAnswer(fault: Fault, requestId: string): string {
  const { status, headers, body } = answerOf(fault, 'GET');
  const all = {
    ...headers,
    ...SECURITY_HEADERS,
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

function parserFault(code: string | undefined): Fault {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Fault('HEADERS_TOO_LARGE', 'The request headers are too large.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Fault('BODY_TOO_LARGE', 'The chunk extensions are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Fault('REQUEST_TIMEOUT', 'The request took too long to arrive.');
    default:
      return new Fault('MALFORMED_REQUEST', 'The request is not valid HTTP.');
  }
}

function retryOf(retry: 'yes' | 'no' | 'client'): boolean | undefined {
  return retry === 'client' ? undefined : retry === 'yes';
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
