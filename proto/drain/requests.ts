/**
 * Requests to one process of the service, beside GET /metrics and on its socket: POST /drain begins
 * the drain, GET /healthz answers while the process lives, GET /readyz while it accepts new work.
 * They have no key: POST /drain is accepted over loopback only, POST /upgrade on the socket only.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { OtherRequests } from '../common/metrics-server.ts';
import { foreignRequest } from '../network/local-requests.ts';
import { DRAIN_MAX_S, type ProcessEnd } from './end.ts';

/** What the requests are for. */
export type Drained = {
  /** Absent: the process does not drain. */
  end?: Pick<ProcessEnd, 'drain' | 'drainS' | 'draining'>;
  /** Why it accepts no new work, as a sentence; absent where another address answers that. */
  unready?: () => Promise<string | undefined> | string | undefined;
  /** Absent: the process cannot be upgraded here. */
  upgrade?: Upgrade;
};
/** The body of POST /upgrade, parsed. `says`: the result, or why nothing has changed. */
type Upgrade = (body: unknown) => Promise<{ isDone: boolean; says: string }>;
type End = NonNullable<Drained['end']>;

type Request = { request: IncomingMessage; response: ServerResponse; query: URLSearchParams };
type Reply = (status: number, line: string) => void;

/**
 * Not the rest of 127.0.0.0/8, nor the machine's other addresses: proxies in front of a container
 * connect from these for clients of the whole network.
 */
const LOOPBACK_PEERS: ReadonlySet<string> = new Set(['127.0.0.1', '::ffff:127.0.0.1', '::1']);

/** `close` ends the answers that wait for the end of the process. */
export function openDrainRequests({ end, unready, upgrade }: Drained): OtherRequests {
  const waiting = new Set<ServerResponse>();

  const drain = ({ request, response, query, end }: Request & { end: End }) => {
    const reply = replyTo(response);
    if (request.method !== 'POST') return reply(405, 'POST /drain');
    const refused = refusalOf(request);
    if (refused !== undefined) return reply(403, refused);
    const seconds = query.get('seconds') ?? String(end.drainS);
    if (!/^\d{1,5}$/.test(seconds) || Number(seconds) > DRAIN_MAX_S) {
      return reply(400, `seconds must be a number from 1 to ${DRAIN_MAX_S}`);
    }
    if (Number(seconds) === 0) {
      return reply(409, 'a drain needs a time: set TABERN_DRAIN_S, or give seconds');
    }
    const isFirst = !end.draining.aborted;
    end.drain(Number(seconds), 'POST /drain');
    const line = isFirst ? `draining for ${seconds} s at most` : 'draining already';
    if (query.get('wait') !== 'true') return reply(202, line);
    response.writeHead(202, TEXT).write(`${line}\n`);
    waiting.add(response);
    response.once('close', () => waiting.delete(response));
  };
  const probe = (request: IncomingMessage, reply: Reply, fault: string | undefined): void => {
    if (request.method !== 'GET' && request.method !== 'HEAD') reply(405, 'GET');
    else reply(fault === undefined ? 200 : 503, fault ?? 'ok');
  };
  const readiness = async (
    request: IncomingMessage,
    reply: Reply,
    ask: NonNullable<Drained['unready']>,
  ): Promise<void> => {
    try {
      probe(request, reply, await ask());
    } catch {
      reply(500, 'the state is not known: see the log'); // of whoever could not tell it
    }
  };
  return {
    serve(request, response) {
      const url = URL.parse(request.url ?? '/', 'http://process');
      if (url === null) return false; // such as `//`
      const { pathname, searchParams } = url;
      const reply = replyTo(response);
      if (pathname !== '/upgrade') request.resume(); // the only one with a body
      if (pathname === '/drain' && end) drain({ request, response, query: searchParams, end });
      else if (pathname === '/upgrade' && upgrade) void replace(request, reply, upgrade);
      else if (pathname === '/healthz') probe(request, reply, undefined);
      else if (pathname === '/readyz' && unready) void readiness(request, reply, unready);
      else return false;
      return true;
    },
    close() {
      for (const response of waiting) response.end('ended\n');
    },
  };
}

/** The caller may run any program as this user already: it has opened the socket. */
async function replace(request: IncomingMessage, reply: Reply, upgrade: Upgrade): Promise<void> {
  if (request.method !== 'POST') return reply(405, 'POST /upgrade');
  try {
    const { isDone, says } = await upgrade(await json(request));
    reply(isDone ? 200 : 409, says);
  } catch (error) {
    reply(400, (error as Error).message);
  }
}

const TEXT = { 'content-type': 'text/plain', 'cache-control': 'no-store' };

function replyTo(response: ServerResponse): Reply {
  return (status, line) => void response.writeHead(status, TEXT).end(`${line}\n`);
}

/** A socket file has no address: its permission is that of its directory. */
function refusalOf({ headers, socket }: IncomingMessage): string | undefined {
  const { remoteAddress } = socket;
  if (remoteAddress === undefined) return undefined;
  if (!LOOPBACK_PEERS.has(remoteAddress)) {
    return 'POST /drain is accepted over loopback only: use `tabern drain` on its machine';
  }
  return foreignRequest(headers, { boundTo: '127.0.0.1' });
}
