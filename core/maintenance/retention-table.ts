/** The table of retention: a row for each thing that is removed with time. */
import type { SettingsOf } from '../../proto/common/settings/read.ts';
import type { IdRange } from '../common/ids.ts';
import type { BlobFiles } from '../files/blob-files.ts';
import type { Store } from '../store/types.ts';

const DAY_MS = 86_400_000;
/** A recording is kept from its session's end, and known by its beginning: the longest session. */
const SESSION_MAX_MS = 6 * 3_600_000;

/** In days: how long each kind is kept. */
export type KeptDays = Pick<Settings, Extract<keyof Settings, `${string}Days`>>;
type Settings = SettingsOf<'core'>;

/** What one operation may remove: made before that time, and so old by its id. */
export type Limit = IdRange & { before: number; at: number; max: number };
export type Purged = {
  removed: number;
  /** The id to go on after; undefined at the end. */
  last: string | undefined;
};

export type Retention = {
  /** As the log names it. */
  name: string;
  /** The field of the log that counts what was removed. */
  unit: string;
  level?: 'debug';
  /** In milliseconds; 0: the store knows when its time is over. */
  keptMs: number;
  /** Found by its id alone: looked for once more among the ids that are ahead of the clock. */
  isById?: true;
  /** One operation of the store. */
  purge: (limit: Limit) => Promise<Purged>;
};

type Parts = {
  store: Pick<
    Store,
    | 'purgeEvents'
    | 'purgeDownloads'
    | 'purgeExtensions'
    | 'purgeSessionLogs'
    | 'purgeRecordings'
    | 'purgeIdempotencyKeys'
    | 'purgeLogs'
    | 'purgeInvocations'
    | 'purgeBuilds'
    | 'purgeSessions'
  >;
  files: Pick<BlobFiles, 'remove'>;
};

/** In the order in which they go: what the others keep of a session keeps it, so it comes last. */
export function retentionTable(kept: KeptDays, parts: Parts): Retention[] {
  const { store } = parts;
  return [
    {
      name: 'events and deliveries',
      unit: 'rows',
      keptMs: kept.eventDays * DAY_MS,
      purge: counted((limit) => store.purgeEvents(limit)),
    },
    ...filesTable(kept, parts),
    ...workTable(kept, parts),
    {
      // what they used stays counted
      name: 'sessions',
      unit: 'sessions',
      keptMs: kept.sessionDays * DAY_MS,
      isById: true,
      purge: (limit) => store.purgeSessions(limit),
    },
  ];
}

/** What sessions have left in files, and in the logs of their protocol. */
function filesTable(kept: KeptDays, { store, files }: Parts): Retention[] {
  const removeFiles = (ids: string[]) => Promise.all(ids.map((id) => files.remove(id)));
  return [
    {
      name: 'downloads',
      unit: 'downloads',
      keptMs: kept.downloadDays * DAY_MS,
      purge: counted(async (limit) => {
        return (await removeFiles(await store.purgeDownloads(limit))).length;
      }),
    },
    {
      // deleted ones, once no open session is to load them
      name: 'extensions',
      unit: 'extensions',
      keptMs: 0,
      purge: counted(async ({ max }) => {
        return (await removeFiles(await store.purgeExtensions(max))).length;
      }),
    },
    {
      name: 'session logs',
      unit: 'chunks',
      keptMs: kept.sessionLogDays * DAY_MS,
      purge: counted((limit) => store.purgeSessionLogs(limit)),
    },
    {
      name: 'recordings',
      unit: 'files',
      keptMs: kept.recordingDays * DAY_MS + SESSION_MAX_MS,
      async purge(limit) {
        const { blobIds, rows } = await store.purgeRecordings(limit);
        await removeFiles(blobIds);
        return { removed: blobIds.length, last: nextOf(limit, rows) };
      },
    },
  ];
}

/** Work that has ended, with what it printed; invocations before builds, as they free versions. */
function workTable(kept: KeptDays, { store }: Parts): Retention[] {
  return [
    {
      name: 'idempotency keys',
      unit: 'keys',
      level: 'debug',
      keptMs: 0,
      purge: counted((limit) => store.purgeIdempotencyKeys(limit)),
    },
    {
      // of invocations and builds; lines that are ahead go with what has printed them
      name: 'logs',
      unit: 'logRows',
      keptMs: kept.logDays * DAY_MS,
      purge: counted((limit) => store.purgeLogs(limit)),
    },
    {
      name: 'invocations',
      unit: 'invocationRows',
      keptMs: kept.invocationDays * DAY_MS,
      isById: true,
      purge: counted((limit) => store.purgeInvocations(limit)),
    },
    {
      // a function's newest version keeps its build
      name: 'builds',
      unit: 'builds',
      keptMs: kept.buildDays * DAY_MS,
      isById: true,
      purge: (limit) => store.purgeBuilds(limit),
    },
  ];
}

/** Of an operation that says how many rows went: less than a batch is the end. */
function counted(purge: (limit: Limit) => Promise<number>): Retention['purge'] {
  return async (limit) => {
    const removed = await purge(limit);
    return { removed, last: nextOf(limit, removed) };
  };
}

function nextOf({ after, max }: Limit, rows: number): string | undefined {
  return rows < max ? undefined : after;
}
