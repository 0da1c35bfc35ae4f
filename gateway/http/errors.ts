/**
 * Error answers: every non-2xx answer is exactly {statusCode, error, message}, by the table of
 * proto/rpc/errors.ts. The message of a Fault is sent to the client; any other error is answered as
 * "unexpected" and logged in full, once.
 */
import { type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import type { Log } from '../../proto/common/log.ts';
import { asFault, type Facts, Fault } from '../../proto/rpc/errors.ts';

/** Headers of every answer: no caching, sniffing or framing. Source: proto/spec/rest.md 6. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const;

/** In seconds: published clients have no limit of their own. Source: proto/spec/rest.md 3. */
const RETRY_AFTER_MAX_S = 60;
/** After an answer to malformed HTTP, the connection is closed after this. Ours. */
const CLOSE_DELAY_MS = 1_000;

/** RFC 9110 11.6.1: the key in a header of its own, or as a bearer. */
const CHALLENGES = 'ApiKey realm="tabern", Bearer realm="tabern"';

type Answer = { status: number; headers: OutgoingHttpHeaders; body: string };

/** The Fault as an HTTP answer. */
export function answerOf(fault: Fault, method: string): Answer {
  const { http: status, retry, retryAfterS } = fault.row;
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json; charset=utf-8' };
  if (status === 401) headers['www-authenticate'] = CHALLENGES;
  if (typeof fault.facts['allow'] === 'string') headers['allow'] = fault.facts['allow'];
  if (status === 426) Object.assign(headers, { upgrade: 'websocket', connection: 'upgrade' });
  // The rest of a request that is too slow is not read.
  if (status === 408) headers['connection'] = 'close';
  const waitS = Number(fault.facts['retryAfterS'] ?? retryAfterS ?? 1);
  if (retry === 'yes') headers['retry-after'] = String(Math.min(waitS, RETRY_AFTER_MAX_S));
  if (status === 429) Object.assign(headers, rateHeaders(fault.facts, waitS));
  const shouldRetry = mayRetry(fault, method);
  if (shouldRetry !== undefined && isRetriedByClients(status)) {
    headers['x-should-retry'] = String(shouldRetry);
  }
  const error = STATUS_CODES[status] ?? 'Client Closed Request';
  return {
    status,
    headers,
    body: JSON.stringify({ statusCode: status, error, message: fault.message }),
  };
}

/** From the facts of a limit's Fault; over gRPC they are text. Source: proto/spec/rest.md 4. */
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

/** The outermost middleware except for the request id: converts errors to answers. */
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
 * Answers input that is not a valid request: malformed HTTP, headers too large or too slow. At most
 * one answer per request: when an answer has begun on this connection, the connection is closed.
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
    // Reads for a moment: closing a socket with unread bytes resets the connection, and the client
    // may lose the answer.
    socket.resume();
    const cut = setTimeout(() => socket.destroy(), CLOSE_DELAY_MS);
    socket.once('close', () => clearTimeout(cut));
  };
}

/** A whole HTTP/1.1 answer as text, for connections without a ServerResponse. */
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

/** Undefined leaves the decision to the client. A GET changes nothing, also when it is too slow. */
function mayRetry({ facts, reason, row }: Fault, method: string): boolean | undefined {
  if (facts['isRepeatable'] === 'true') return true; // by its idempotency key
  if (reason === 'DEADLINE') return method === 'GET' || method === 'HEAD';
  return row.retry === 'client' ? undefined : row.retry === 'yes';
}

/** Retried by the published SDK unless x-should-retry is false. Source: proto/spec/rest.md 3. */
function isRetriedByClients(status: number): boolean {
  return status === 408 || status === 409 || status >= 429;
}
