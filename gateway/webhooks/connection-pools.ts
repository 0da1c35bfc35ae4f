/**
 * Connections to endpoints: one undici Pool per webhook and endpoint, so that a hanging endpoint
 * delays no other, kept while it is used. A new TLS connection costs 2.2 ms of CPU, a reused one
 * 0.1 ms, so reuse matters most.
 */
import { createSecureContext, getCACertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { buildConnector, Pool } from 'undici';
import type { Guard } from './ssrf-guard.ts';

/** Per webhook: the cap of its deliveries in flight. Source: proto/spec/webhooks.md 9. */
const CONNECTIONS_MAX = 8;
/** The least recently used pool is closed first. Source: proto/spec/webhooks.md 9. */
const POOLS_MAX = 500;
/** In milliseconds, DNS included. Source: proto/spec/webhooks.md 5. */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * Per address, when there are several. Ours: Node's default of 250 ms is too short for distant
 * receivers and for a busy process, and Node does not return to an address.
 */
const ATTEMPT_TIMEOUT_MS = 2_000;
/** In milliseconds: shorter than the usual 5 s of servers, so that the sender closes first. */
const KEEP_ALIVE_MS = 4_000;
/** In bytes, of an answer's headers. Source: proto/spec/webhooks.md 5. */
const HEADERS_MAX_BYTES = 16 * 1024;

export type Connections = {
  pool: Pool;
  /** Path and query of the endpoint. */
  path: string;
  /** When it last received an answer: the endpoint may just have closed a connection of it. */
  answeredAt: number;
};

export type Pools = AsyncDisposable & {
  /**
   * Throws BlockedAddress when the endpoint is not allowed. The URL is checked once, with the pool;
   * its name is resolved and checked at each connection.
   */
  of(webhookId: string, endpoint: string): Connections;
};

/** `ca` is PEM text of certificate authorities in addition to the system's. */
export function openPools(guard: Guard, ca?: string): Pools {
  // One shared context: a list of 140 certificates is parsed once instead of at each connection.
  const secureContext = createSecureContext({
    minVersion: 'TLSv1.2',
    ca: ca === undefined ? getCACertificates('default') : [...getCACertificates('default'), ca],
  });
  const connect = guardedConnector(guard, secureContext);
  const pools = new LRUCache<string, Connections>({
    max: POOLS_MAX,
    dispose({ pool }, _name, reason) {
      // Closes when the last attempt through it has ended.
      if (reason === 'evict') void pool.close().catch(() => undefined);
    },
  });

  function open(endpoint: string): Connections {
    guard.checkUrl(endpoint);
    const { origin, pathname, search } = new URL(endpoint);
    const pool = new Pool(origin, {
      connect,
      connections: CONNECTIONS_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: HEADERS_MAX_BYTES,
      // The attempt has its own deadlines: undici's are late by up to half a second.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { pool, path: pathname + search, answeredAt: Number.NEGATIVE_INFINITY };
  }

  return {
    of(webhookId, endpoint) {
      const name = `${webhookId} ${endpoint}`;
      const connections = pools.get(name) ?? open(endpoint);
      pools.set(name, connections);
      return connections;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()));
      pools.clear();
    },
  };
}

/** Certificate verification cannot be disabled, not even by NODE_TLS_REJECT_UNAUTHORIZED. */
function guardedConnector(
  guard: Guard,
  secureContext: ReturnType<typeof createSecureContext>,
): buildConnector.connector {
  const connect = buildConnector({
    secureContext,
    rejectUnauthorized: true,
    lookup: guard.lookup,
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
  } as buildConnector.BuildOptions);
  return (options, answer) => {
    connect(options, (...[error, socket]) => {
      if (error) return answer(error, null);
      try {
        guard.checkAddress(socket.remoteAddress);
        answer(null, socket);
      } catch (blocked) {
        socket.destroy();
        answer(blocked as Error, null);
      }
    });
  };
}
