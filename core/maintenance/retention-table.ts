/** The table of retention: one row for each kind of resource that is removed with age. */
import type { SettingsOf } from '../../proto/common/settings/read.ts';
import type { IdRange } from '../common/ids.ts';
import type { Blobs } from '../files/blobs.ts';
import type { Store } from '../store/types.ts';

const DAY_MS = 86_400_000;
/** Of the sums of a day. Ours: longer than a year, and than the 90 days that the console shows. */
const USAGE_DAYS = 400;
/** A recording is kept from its session's end, and stored with its start: the longest session. */
const SESSION_MAX_MS = 6 * 3_600_000;

/** In days: how long each kind is kept. */
export type KeptDays = Pick<CoreSettings, Extract<keyof CoreSettings, `${string}Days`>>;
type CoreSettings = SettingsOf<'core'>;

/** The range of one operation: created before that time, and as old by its id. */
export type Limit = IdRange & { before: number; at: number; max: number };
/** `last`: the id to go on after; undefined at the end. */
type Purged = { removed: number; last: string | undefined };

export type Retention = {
  /** As the log names it. */
  name: string;
  /** The field of the log that counts what was removed. */
  unit: string;
  level?: 'debug';
  /** In milliseconds; 0: the store decides by the row's own expiry. */
  keptMs: number;
  /** Found by its id alone: a second pass reads the ids that are ahead of the clock. */
  isById?: true;
  /** One operation of the store. */
  purge: (limit: Limit) => Promise<Purged>;
};

type RetentionDeps = { store: Store; files: Pick<Blobs, 'remove'> };

/** In order of removal. Sessions are last: the rest of a session keeps its row. */
export function retentionTable(kept: KeptDays, deps: RetentionDeps): Retention[] {
  const { store } = deps;
  return [
    {
      name: 'events and deliveries',
      unit: 'rows',
      keptMs: kept.eventDays * DAY_MS,
      purge: counted(store.purgeEvents),
    },
    {
      name: 'audit events',
      unit: 'auditRows',
      keptMs: kept.auditDays * DAY_MS,
      purge: counted(store.purgeAudit),
    },
    ...filesTable(kept, deps),
    ...workTable(kept, deps),
    {
      name: 'sums of days',
      unit: 'rows',
      level: 'debug',
      keptMs: USAGE_DAYS * DAY_MS,
      purge: counted(({ before, max }) =>
        store.purgeUsage({ day: Math.floor(before / DAY_MS), max }),
      ),
    },
    {
      // their usage was counted at their end
      name: 'sessions',
      unit: 'sessions',
      keptMs: kept.sessionDays * DAY_MS,
      isById: true,
      purge: store.purgeSessions,
    },
  ];
}

/** Files and protocol logs of sessions. */
function filesTable(kept: KeptDays, { store, files }: RetentionDeps): Retention[] {
  async function removeFiles(ids: string[]): Promise<number> {
    await Promise.all(ids.map((id) => files.remove(id)));
    return ids.length;
  }
  return [
    {
      name: 'downloads',
      unit: 'downloads',
      keptMs: kept.downloadDays * DAY_MS,
      purge: counted(async (limit) => removeFiles(await store.purgeDownloads(limit))),
    },
    {
      // deleted ones that no open session loads
      name: 'extensions',
      unit: 'extensions',
      keptMs: 0,
      purge: counted(async ({ max }) => removeFiles(await store.purgeExtensions(max))),
    },
    {
      // deleted ones that no open session trusts
      name: 'certificates',
      unit: 'certificates',
      keptMs: 0,
      purge: counted(({ max }) => store.purgeCertificates(max)),
    },
    {
      // deleted ones, from their sessions
      name: 'labels',
      unit: 'labelRows',
      keptMs: 0,
      purge: counted(({ max }) => store.purgeLabels(max)),
    },
    {
      name: 'session logs',
      unit: 'chunks',
      keptMs: kept.sessionLogDays * DAY_MS,
      purge: counted(store.purgeSessionLogs),
    },
    {
      name: 'recordings',
      unit: 'files',
      keptMs: kept.recordingDays * DAY_MS + SESSION_MAX_MS,
      async purge(limit) {
        const { blobIds, rows } = await store.purgeRecordings(limit);
        return { removed: await removeFiles(blobIds), last: nextOf(limit, rows) };
      },
    },
  ];
}

/** Ended work with its logs; invocations before builds, because they free versions. */
function workTable(kept: KeptDays, { store, files }: RetentionDeps): Retention[] {
  return [
    {
      name: 'idempotency keys',
      unit: 'keys',
      level: 'debug',
      keptMs: 0,
      purge: counted(store.purgeIdempotencyKeys),
    },
    {
      // of invocations and builds; lines ahead of the clock are removed with their owner
      name: 'logs',
      unit: 'logRows',
      keptMs: kept.logDays * DAY_MS,
      purge: counted(store.purgeLogs),
    },
    {
      name: 'invocations',
      unit: 'invocationRows',
      keptMs: kept.invocationDays * DAY_MS,
      isById: true,
      purge: counted(store.purgeInvocations),
    },
    {
      // what a deletion left: large ones, failures, crashes
      name: 'deleted functions',
      unit: 'functionRows',
      keptMs: 0,
      async purge(limit) {
        const { rows, dropped } = await store.purgeFunctions({ max: limit.max });
        await files.remove(...dropped);
        return { removed: rows, last: nextOf(limit, rows) };
      },
    },
    {
      // a function's newest version keeps its build
      name: 'builds',
      unit: 'builds',
      keptMs: kept.buildDays * DAY_MS,
      isById: true,
      purge: store.purgeBuilds,
    },
  ];
}

/** For an operation that returns the number of removed rows: less than a batch is the end. */
function counted(purge: (limit: Limit) => Promise<number>): Retention['purge'] {
  return async (limit) => {
    const removed = await purge(limit);
    return { removed, last: nextOf(limit, removed) };
  };
}

function nextOf({ after, max }: Limit, rows: number): string | undefined {
  return rows < max ? undefined : after;
}
