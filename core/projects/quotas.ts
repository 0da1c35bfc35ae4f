/**
 * Quotas: how much a project may store of each kind, so that one project cannot fill the disk. Sums
 * are updated with the rows (core/store/sqlite/storage.ts); bytes of uploads in progress are
 * counted here, so that concurrent uploads share the quota.
 */
import type { ProjectStorage } from '../../proto/gen/tabern/v1/projects.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type {
  BlobKind,
  BlobRow,
  QuotaName,
  Stored,
  StoredKind,
  Within,
} from '../store/types/files.ts';
import type { Store } from '../store/types.ts';

const MIB = 1 << 20;
/** Written by builds: counted but not refused, because their archives were accepted. */
const KINDS = {
  contexts: ['ACTIVE_CONTEXT'],
  contextMib: ['CONTEXT'],
  downloadMib: ['DOWNLOAD'],
  recordingMib: ['RECORDING'],
  uploadMib: ['BUILD_ARCHIVE', 'EXTENSION', 'BUNDLE'],
  logMib: ['SESSION_LOG', 'RESULT'],
} as const satisfies Record<QuotaName, readonly StoredKind[]>;
const OF_KIND: Partial<Record<StoredKind, QuotaName>> = {
  CONTEXT: 'contextMib',
  DOWNLOAD: 'downloadMib',
  RECORDING: 'recordingMib',
  BUILD_ARCHIVE: 'uploadMib',
  EXTENSION: 'uploadMib',
  RESULT: 'logMib',
};
export const QUOTA_NAMES = Object.keys(KINDS) as QuotaName[];

export type QuotaLimits = Readonly<Record<QuotaName, number>>;

/** One blob that is being written. */
export type Arrival = Disposable & {
  /** Counts received bytes. Throws QUOTA_EXCEEDED. */
  add(bytes: number): void;
  /** Writes the row. Throws QUOTA_EXCEEDED; the caller must then remove the file. */
  store(blob: BlobRow): Promise<void>;
};

export type Quotas = {
  limits(projectId: string): Promise<QuotaLimits>;
  usage(projectId: string): Promise<ProjectStorage>;
  /**
   * Throws QUOTA_EXCEEDED when the quota is reached. Protocol logs do not count against results: a
   * log ends at the quota, and cannot be deleted to make room for an invocation.
   */
  checkRoom(projectId: string, kind: StoredKind): Promise<void>;
  /** For store operations that compare themselves. */
  within(projectId: string, quota: QuotaName): Promise<Within>;
  /** `replacedBytes`: size of the replaced content, which does not count. */
  arrive(projectId: string, kind: BlobKind, replacedBytes?: number): Promise<Arrival>;
};

export function openQuotas({
  store,
  defaults,
}: {
  store: Pick<Store, 'projectStorage' | 'addBlob'>;
  defaults: QuotaLimits;
}): Quotas {
  /** In bytes, by project and quota. */
  const arriving = new Map<string, number>();

  async function look(projectId: string) {
    const { stored, quotas } = await store.projectStorage(projectId);
    const own = Object.fromEntries(quotas.map(({ quota, value }) => [quota, value]));
    return { stored, limits: { ...defaults, ...own } };
  }

  return {
    limits: async (projectId) => (await look(projectId)).limits,

    async usage(projectId) {
      const { stored, limits } = await look(projectId);
      const bytes = (quota: Exclude<QuotaName, 'contexts'>) => ({
        used: sumOf(stored, quota).bytes,
        limit: limits[quota] * MIB,
      });
      return {
        contexts: { used: sumOf(stored, 'contexts').count, limit: limits.contexts },
        contextBytes: bytes('contextMib'),
        downloadBytes: bytes('downloadMib'),
        recordingBytes: bytes('recordingMib'),
        uploadBytes: bytes('uploadMib'),
        logBytes: bytes('logMib'),
      };
    },

    async checkRoom(projectId, kind) {
      const quota = OF_KIND[kind];
      if (quota === undefined) return;
      const { stored, limits } = await look(projectId);
      const counted = kind === 'RESULT' ? stored.filter((one) => one.kind === kind) : stored;
      const isFull = sumOf(counted, quota).bytes >= limits[quota] * MIB;
      if (isFull) throw quotaExceeded(quota, limits[quota]);
    },

    async within(projectId, quota) {
      const { limits } = await look(projectId);
      return { kinds: KINDS[quota], maxBytes: limits[quota] * MIB };
    },

    async arrive(projectId, kind, replacedBytes = 0) {
      const quota = OF_KIND[kind];
      if (quota === undefined) return unlimited(store);
      const { stored, limits } = await look(projectId);
      const limit = limits[quota];
      const maxBytes = limit * MIB + replacedBytes;
      const before = sumOf(stored, quota).bytes;
      const place = `${projectId} ${quota}`;
      let own = 0;
      const count = (bytes: number): number => {
        const sum = (arriving.get(place) ?? 0) + bytes;
        if (sum > 0) arriving.set(place, sum);
        else arriving.delete(place);
        return sum;
      };
      return {
        add(bytes) {
          own += bytes;
          if (before + count(bytes) > maxBytes) throw quotaExceeded(quota, limit);
        },
        async store(blob) {
          const kinds = KINDS[quota];
          const added = await store.addBlob(blob, { kinds, maxBytes });
          if (added === 'full') throw quotaExceeded(quota, limit);
        },
        [Symbol.dispose]: () => void count(-own),
      };
    },
  };
}

const DELETE = 'Delete what is not needed any more';

/** Names the quota and how to free space. */
export function quotaExceeded(quota: QuotaName, limit: number): Fault {
  const unit = quota === 'contexts' ? '' : ' MiB';
  const room = quota === 'logMib' ? 'Logs and results are removed by their age' : DELETE;
  const message =
    `The project's quota \`${quota}\` (${limit}${unit}) is used up. ` +
    `${room}; the operator can raise it.`;
  return new Fault('QUOTA_EXCEEDED', message, { quota, limit });
}

function unlimited(store: Pick<Store, 'addBlob'>): Arrival {
  return {
    add: () => {},
    store: async (blob) => void (await store.addBlob(blob)),
    [Symbol.dispose]: () => {},
  };
}

function sumOf(stored: readonly Stored[], quota: QuotaName): { count: number; bytes: number } {
  const kinds: readonly StoredKind[] = KINDS[quota];
  const own = stored.filter(({ kind }) => kinds.includes(kind));
  return {
    count: own.reduce((sum, { count }) => sum + count, 0),
    bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
