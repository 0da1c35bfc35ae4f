/** The engines on which the store suite runs, with short calls for any of them. */

import { newId } from '../../../core/common/ids.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { openStore } from '../../../core/store/thread.ts';
import type { LeasedWork, WorkKind } from '../../../core/store/types/leases.ts';
import type { Store } from '../../../core/store/types.ts';
import { openOnPostgres, openThroughPgBouncer } from '../../support/engine.ts';
import { hasPostgres } from '../../support/postgres.ts';
import { tempDirectory } from '../../support/temp.ts';
import { sized } from '../../support/whole.ts';

/** Opens a separate store on a folder; another engine adds a line. */
export type Opener = { name: string; open(dir: string): Promise<Store> };

export const ENGINES: readonly Opener[] = [
  {
    name: 'sqlite',
    open: (dir) => openStore({ dir, durability: 'normal', onFatal: fail }),
  },
  ...(hasPostgres()
    ? [
        { name: 'postgres behind PgBouncer', open: openThroughPgBouncer },
        // the same statements, with more features of the server
        ...sized([], [{ name: 'postgres', open: openOnPostgres }]),
      ]
    : []),
];

/** The start of all tests' time. */
export const T0 = Date.UTC(2026, 0, 2);
export const LEASE_MS = 15_000;
export const HOLDER = { runnerId: 'runner', instanceId: 'first' };

/** A session of the project, for `createSession`. */
export function newSession(projectId: string) {
  return {
    id: newId(),
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: '{}',
    timeoutMs: 60_000,
    userMetadata: null,
    at: T0,
    waitUntil: T0 + 60_000,
  };
}

export type Bench = AsyncDisposable & {
  store: Store;
  dir: string;
  /** A project of that name, with queues that run `cap` invocations at once. */
  project(name: string, cap?: number): Promise<string>;
  /** A published function, whose build printed so many lines: its ids. */
  publish(
    projectId: string,
    name?: string,
    lines?: number,
  ): Promise<{ functionId: string; versionId: string }>;
  /** An accepted invocation. */
  accept(
    projectId: string,
    of: { functionId: string; versionId: string },
    more?: { queueMax?: number; waitUntil?: number; at?: number },
  ): Promise<{ id: string; sessionId: string }>;
  /** Leases and takes, as a runner does. */
  lease(kind: WorkKind, max?: number, at?: number): Promise<LeasedWork[]>;
  /** Leases without the first renewal. */
  offer(kind: WorkKind, max?: number, at?: number): Promise<LeasedWork[]>;
  /** A webhook for every type; returns the events since the previous call, each once. */
  listen(projectId: string, types?: string[], at?: number): Promise<() => Promise<string[]>>;
};

/** `await using bench = await openBench(engine)`: an empty store with one registered runner. */
export async function openBench(engine: Opener): Promise<Bench> {
  const temp = tempDirectory();
  const store = await engine.open(temp.path);
  await store.registerRunner({ ...HOLDER, at: T0 });
  const offer: Bench['offer'] = (kind, max = 1, at = T0) => {
    const leaseIds = Array.from({ length: max }, () => newId());
    return store.leaseWork({ ...HOLDER, kind, leaseIds, leaseMs: LEASE_MS, at });
  };
  const lease: Bench['lease'] = async (kind, max = 1, at = T0) => {
    const work = await offer(kind, max, at);
    const leaseIds = work.map(({ leaseId }) => leaseId);
    await store.renewLeases({ ...HOLDER, leaseIds, leaseMs: LEASE_MS, at });
    return work;
  };
  return {
    store,
    dir: temp.path,
    lease,
    offer,
    async project(name, cap = 25) {
      const row = { id: newId(), name, defaultTimeout: 900, concurrency: cap };
      return (await store.ensureProject({ ...row, createdAt: T0, updatedAt: T0 })).id;
    },
    publish: (projectId, name = 'title', lines = 0) =>
      publish(store, lease, { projectId, name, lines }),
    async accept(projectId, of, { queueMax = 1_000, waitUntil = T0 + 3_600_000, at = T0 } = {}) {
      const ids = { id: newId(), sessionId: newId(), projectId, ...of };
      const session = { sessionParams: '{}', contextId: null, userMetadata: null };
      const rest = { params: '{"a":1}', region: 'us-west-2', timeoutMs: 900_000 };
      await store.acceptInvocation({ ...ids, ...session, ...rest, waitUntil, queueMax, at });
      return ids;
    },
    listen: (projectId, types = TYPES, at = LATER) => listen(store, projectId, types, at),
    async [Symbol.asyncDispose]() {
      await store.close();
      await temp[Symbol.asyncDispose]();
    },
  };
}

/** All that is due by then is claimed. */
const LATER = T0 + 30 * 86_400_000;
const TYPES = ['pending', 'running', 'completed', 'failed'].map(
  (s) => `functions.invocations.${s}`,
);

async function publish(
  store: Store,
  lease: Bench['lease'],
  { projectId, name, lines: count }: { projectId: string; name: string; lines: number },
) {
  const blob = { projectId, size: 1, sha256: 'aa', createdAt: T0 };
  const [archiveBlobId, bundleBlobId] = [newId(), newId()];
  await store.addBlob({ ...blob, id: archiveBlobId, kind: 'BUILD_ARCHIVE' });
  const times = { at: T0, waitUntil: T0 + 3_600_000, expiresAt: T0 + 600_000 };
  const build = { id: newId(), projectId, entrypoint: 'index.ts', archiveBlobId };
  await store.createBuild({ ...build, ...times, queueMax: 10 });
  const [work] = await lease('build');
  if (work?.id !== build.id) throw new Error('another build was waiting');
  const { leaseId } = work;
  const lines = Array.from({ length: count }, () => ({ message: 'a', at: 0, level: 'log' }));
  const limit = { maxBytes: 1_000_000, linesMax: 20_000, marker: '' };
  if (count > 0) await store.appendLogs({ leaseId, first: 0, lines, ...limit });
  await store.addBlob({ ...blob, id: bundleBlobId, kind: 'BUNDLE' });
  const ids = { functionId: newId(), versionId: newId() };
  const manifests = [{ ...ids, name, sessionConfig: null, paramsSchema: null }];
  const outcome = { kind: 'success', bundleBlobId, manifests } as const;
  await store.completeBuild({ leaseId, outcome, at: T0 });
  const built = await store.getBuild({ id: build.id, projectId });
  return { functionId: built?.functions[0]?.function.id ?? '', versionId: ids.versionId };
}

/** Claims due deliveries, as a sender does, and reports them delivered. */
async function listen(store: Store, projectId: string, eventTypes: string[], later: number) {
  const endpoint = 'https://example.com/hook';
  const id = newId();
  const webhook = { id, projectId, endpoint, endpointKey: id, eventTypes };
  await store.createWebhook({ ...webhook, sealed: Buffer.from('sealed'), at: T0 }, 100);
  return async () => {
    const sender = { senderId: 'sender', instanceId: newId() };
    const limits = { max: 64, perProjectMax: 64, ratePerS: 50, jitter: 1 };
    const { claims } = await store.claimDeliveries({
      ...sender,
      ...limits,
      at: later,
      signedAtS: 0,
      leaseUntil: later + 45_000,
    });
    const outcome = { outcome: 'ok', status: 204, latencyMs: 1, error: '' } as const;
    const ends = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
      deliveryId,
      claimSeq,
      attemptId,
      ...outcome,
      response: Buffer.alloc(0),
      retryAfterS: null,
      abortMessage: false,
      jitter: 1,
    }));
    if (ends.length > 0)
      await store.reportAttempts({ ends, at: later, rule: readCoreConfig({}).webhookRule });
    return claims.map(({ body }) => JSON.parse(Buffer.from(body).toString()).type).sort();
  };
}

function fail(error: Error): never {
  throw error;
}
