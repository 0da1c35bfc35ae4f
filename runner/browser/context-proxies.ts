/**
 * Proxies of browser contexts (`proxyServer` of Target.createBrowserContext). Chrome never connects
 * to one: the context gets an address of the jail's loopback, and the session's egress sends the
 * connections to that address through the proxy, after the usual checks of proxy and target. Hosts
 * matched by the client's bypass rules, and `direct://`, use the route of the whole session.
 */
import { createServer } from 'node:net';
import type { Egress } from '../jail/egress/egress-proxy.ts';
import type { Route } from '../jail/egress/routes.ts';
import type { Pipe } from './cdp/pipe.ts';

/** Ours: contexts with a proxy at the same time; each has its pages. */
const PROXIES_MAX = 500;
/** Ours: after this many, the proxies of closed contexts are released. */
const SWEEP_EVERY = 32;
/** Ours: another program may listen on an address of the machine's loopback. */
const ADDRESSES_TRIED = 8;

export type ContextProxies = {
  /**
   * Opens a proxy for a context that Chrome has not created yet. `write` sends the command with
   * these params and returns the id that Chrome got; undefined when the client is disconnected.
   * Rejects when there are too many proxies, or no address is free.
   */
  create(route: Route, write: (params: object) => number | undefined): Promise<void>;
  /** Chrome has responded to that call; undefined: it failed, or no response will arrive. */
  onCreated(browserContextId: string | undefined, call: number): void;
};

type Live = { address: string; browserContextId?: string; close(): void };

/** `isShared`: the jail uses the machine's loopback, where each address needs a listener. */
export function openContextProxies(
  { egress, pipe }: { egress: Egress; pipe: Pipe },
  { port, isShared }: { port: number; isShared: boolean },
): ContextProxies {
  const live = new Set<Live>();
  const coming = new Map<number, Live>();
  let count = 1; // 127.0.0.1 is the session's own
  const release = (one: Live): void => {
    live.delete(one);
    egress.divert(one.address, undefined);
    one.close();
  };
  const sweep = async (): Promise<void> => {
    const { browserContextIds } = await pipe.call('Target.getBrowserContexts');
    const there = new Set(browserContextIds as string[]);
    for (const one of live) {
      if (one.browserContextId !== undefined && !there.has(one.browserContextId)) release(one);
    }
  };
  const listen = async (): Promise<Live> => {
    for (let tried = 0; tried < ADDRESSES_TRIED; tried += 1) {
      count += 1;
      const address = `127.${(count >> 16) & 0xff}.${(count >> 8) & 0xff}.${count & 0xff}`;
      const close = isShared ? await listenAt({ host: address, port }, egress) : () => undefined;
      if (close !== undefined) return { address, close };
    }
    throw new Error('no address is free for a proxy');
  };
  void pipe.closed.then(() => {
    for (const one of live) release(one);
  });
  return {
    async create(route, write) {
      if (count % SWEEP_EVERY === 0 || live.size >= PROXIES_MAX) await sweep();
      if (live.size >= PROXIES_MAX) {
        throw new Error(`a session has ${PROXIES_MAX} browser contexts with a proxy at most`);
      }
      const one = await listen();
      live.add(one);
      egress.divert(one.address, route);
      const proxyServer = `http://${one.address}:${port}`;
      const call = write({ proxyServer, proxyBypassList: '<-loopback>' });
      if (call === undefined) release(one);
      else coming.set(call, one);
    },
    onCreated(browserContextId, call) {
      const one = coming.get(call);
      coming.delete(call);
      if (one && browserContextId !== undefined) one.browserContextId = browserContextId;
      else if (one) release(one);
    },
  };
}

/** Returns the function that stops listening; undefined when another program listens there. */
async function listenAt(
  at: { host: string; port: number },
  { handle }: Egress,
): Promise<(() => void) | undefined> {
  const server = createServer(handle);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once('error', () => resolve(false)).listen(at, () => resolve(true));
  return (await promise) ? () => void server.close() : undefined;
}
