/** Where a benchmark has its browsers from: this service, a peer, or a Chrome that runs. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Stack } from '../../support/service/stack.ts';

export type Opened = { connectUrl: string; release(): Promise<unknown> };
export type Provider = { create(): Promise<Opened> };
/** Another service, which whoever measures it has running; its name is theirs. */
export type Peer = Provider & { name: string };
/** This service, which has no name, or a peer. */
export type Named = Provider & { name?: string };

/** What a peer may take for a measure of one round. */
const PEER_LIMIT_MS = 120_000;

/** Sessions of the service. */
export function sessionsOf({ call }: Pick<Stack, 'call'>, browserSettings: object = {}): Provider {
  return {
    async create() {
      const made = await call<{ id: string; connectUrl: string }>('/v1/sessions', {
        json: { browserSettings },
      });
      const release = { json: { status: 'REQUEST_RELEASE' } };
      return {
        connectUrl: made.connectUrl,
        release: () => call(`/v1/sessions/${made.id}`, release),
      };
    },
  };
}

/** One browser for all, such as a Chrome that runs already; or, of a peer, one a connection. */
export function connectionsTo(connectUrl: string): Provider {
  return { create: async () => ({ connectUrl, release: async () => undefined }) };
}

/**
 * `name=ws://...`: a connection is a session, as browserless has it. `name=http://...`: sessions by
 * REST, as Steel has it. Throws for any other text.
 */
export function peerOf(text: string): Peer {
  const [, name = '', address = ''] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url && /^wss?:$/.test(url.protocol)) return { name, ...connectionsTo(url.href) };
  if (url && /^https?:$/.test(url.protocol)) return { name, ...sessionsAt(url) };
  throw new Error(`--peer ${text}: name=ws://... or name=http://... is expected`);
}

function sessionsAt(base: URL): Provider {
  const post = async (path: string) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(new URL(path, base), { method: 'POST', headers, body: '{}' });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`);
    return JSON.parse(text) as { id: string; websocketUrl: string };
  };
  return {
    async create() {
      const { id, websocketUrl } = await post('/v1/sessions');
      return { connectUrl: websocketUrl, release: () => post(`/v1/sessions/${id}/release`) };
    },
  };
}

/** From the create to the first command's answer, in milliseconds. Does not wait for the end. */
export async function firstAnswer(provider: Provider): Promise<number> {
  const before = performance.now();
  const { connectUrl, release } = await provider.create();
  const client = new WebSocket(connectUrl, { perMessageDeflate: false });
  await once(client, 'open');
  client.send('{"id":1,"method":"Browser.getVersion"}');
  await once(client, 'message');
  const took = performance.now() - before;
  client.close();
  await release();
  return took;
}

/** What `act` gives; of a peer that fails or is too slow undefined, with the reason printed. */
export async function triedBy<T>(
  peer: string | undefined,
  act: () => Promise<T>,
): Promise<T | undefined> {
  if (peer === undefined) return await act();
  const late = new AbortController();
  const limit = pause(PEER_LIMIT_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`no end within ${PEER_LIMIT_MS} ms`);
  });
  try {
    return await Promise.race([act(), limit]);
  } catch (error) {
    console.log(`${peer}: ${(error as Error).message.split('\n', 1)}`);
    return undefined;
  } finally {
    limit.catch(() => undefined); // it is over
    late.abort();
  }
}
