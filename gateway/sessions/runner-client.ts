/**
 * The client of a runner's session server. Core locates a session; the signing key authenticates
 * the connection. runner/sessions/server/session-server.ts defines the server.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect as connectTls } from 'node:tls';
import type {
  LocateSessionRequest,
  LocateSessionResponse,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, type Reason } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import {
  DIAL_TIMEOUT_MS,
  LOCATE_MAX_MS,
  SESSION_ANSWER_MAX_BYTES,
  SESSION_ANSWER_TIMEOUT_MS,
} from '../config.ts';
import type { RunnerTrust } from './runner-trust.ts';

/** Location of a running session. `trust`: of runners at `tls:` addresses. */
export type Place = Omit<LocateSessionResponse, 'status'> & { trust: RunnerTrust | undefined };
/** The part that is needed to connect. */
export type SessionPlace = Pick<Place, 'address' | 'signingKey'> &
  Partial<Pick<Place, 'runnerId' | 'trust'>>;

const TLS = 'tls:';

/** Refusals of the session server that keep their code. */
const REFUSALS: Readonly<Record<number, Reason>> = {
  400: 'MALFORMED_REQUEST',
  404: 'ROUTE_NOT_FOUND',
  410: 'SESSION_ENDED',
  413: 'BODY_TOO_LARGE',
};
const TOO_LONG = 'The answer of the session’s browser is too long.';

export type Credential = NonNullable<LocateSessionRequest['credential']>;
export type Locate = (credential: Credential, signal: AbortSignal) => Promise<Place>;

/**
 * Locates a session and waits for its Chrome, LOCATE_MAX_MS at most. Throws core's Faults:
 * SIGNING_KEY_INVALID, SESSION_ENDED, and CORE_UNAVAILABLE when the wait is over.
 */
export function locator(options: {
  clients: Pick<Clients, 'sessions'>;
  gatewayToken: string;
  runnerTrust?: RunnerTrust | undefined;
}): Locate {
  const { runnerTrust: trust } = options;
  const metadata = { authorization: `Bearer ${options.gatewayToken}` };
  return async (credential, signal) => {
    const wanted = { credential, waitMs: LOCATE_MAX_MS };
    const found = await options.clients.sessions.locateSession(wanted, { metadata, signal });
    if (found.status !== 'PENDING') return { ...found, trust };
    throw new Fault('CORE_UNAVAILABLE', 'The session has no browser yet. Try again.');
  };
}

/** A connection to a session server. Throws BROWSER_FAILED, or the signal's reason. */
export async function dial(place: SessionPlace, signal: AbortSignal): Promise<Socket> {
  const { address, runnerId = '', trust } = place;
  const isSecure = address.startsWith(TLS);
  const socket = isSecure ? connectSecurely(place) : connect(addressOf(address));
  socket.setNoDelay(true);
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal: within });
    return socket;
  } catch (cause) {
    socket.destroy();
    signal.throwIfAborted();
    trust?.report(cause, runnerId);
    throw unreachable(cause);
  }
}

/** The certificate must have the runner's id as a name: core knows which runner it is. */
function connectSecurely({ address, runnerId = '', trust }: SessionPlace): Socket {
  const { host, port } = addressOf(address.slice(TLS.length));
  return connectTls({
    host,
    port,
    servername: runnerId,
    secureContext: trust?.context(),
    ALPNProtocols: ['http/1.1'],
  });
}

/**
 * Sends one request to the session server and returns its JSON. Throws the server's refusal as a
 * Fault with the same code, or BROWSER_FAILED when it is unreachable.
 */
export async function callSessionServer(place: SessionPlace, wanted: Wanted): Promise<unknown> {
  const answer = await bytesFromSessionServer(place, wanted);
  try {
    return JSON.parse(answer.toString());
  } catch (cause) {
    throw unreachable(cause);
  }
}

type Wanted = {
  method: 'GET' | 'PUT';
  path: string;
  body?: Readable;
  signal: AbortSignal;
  timeoutMs?: number;
};

/** Returns the answer unparsed, for large answers that are passed through. */
export async function bytesFromSessionServer(place: SessionPlace, wanted: Wanted): Promise<Buffer> {
  const { method, path, body, signal, timeoutMs = SESSION_ANSWER_TIMEOUT_MS } = wanted;
  const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const socket = await dial(place, within).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error instanceof Fault ? error : unreachable(error);
  });
  const key = `signingKey=${encodeURIComponent(place.signingKey)}`;
  const call = request({
    createConnection: () => socket,
    method,
    signal: within,
    path: `${path}${path.includes('?') ? '&' : '?'}${key}`,
  });
  try {
    const answered = once(call, 'response', { signal: within });
    answered.catch(() => undefined); // handled below; the body may fail first
    const sent = body && pipeline(body, call);
    // handled below; a refusing server answers before it has read the body
    sent?.catch(() => undefined);
    if (sent) await Promise.race([sent, answered]);
    else call.end();
    const [response] = await answered;
    const answer = await bytesIn(response);
    if (response.statusCode === 200) return answer;
    throw refusal(response.statusCode ?? 0, JSON.parse(answer.toString()));
  } catch (error) {
    if (error instanceof Fault) throw error;
    signal.throwIfAborted();
    throw unreachable(error);
  } finally {
    if (!call.writableFinished) call.destroy();
    socket.destroySoon();
  }
}

async function bytesIn(response: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > SESSION_ANSWER_MAX_BYTES) throw new Fault('BROWSER_FAILED', TOO_LONG);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function addressOf(address: string): { path?: string; host?: string; port: number } {
  if (address.startsWith('unix:')) return { path: address.slice('unix:'.length), port: 0 };
  const { hostname, port } = new URL(`tcp://${address}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function refusal(status: number, answer: unknown): Fault {
  const { message } = Object(answer) as { message?: unknown };
  const text = typeof message === 'string' ? message : 'The runner refused the request.';
  const reason = REFUSALS[status];
  if (reason !== undefined) return new Fault(reason, text);
  return new Fault('BROWSER_FAILED', text, { status });
}

function unreachable(cause: unknown): Fault {
  return new Fault('BROWSER_FAILED', 'The session could not be reached. Try again.', {}, cause);
}
