/**
 * Quotas: how much a project may store of each kind, so that one project cannot fill the disk. Sums
 * are updated with the rows (core/store/sqlite/storage.ts); bytes of uploads in progress are
 * counted here, so that concurrent uploads share the quota.
 */
import { must } from '../../proto/common/must.ts';
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
/** The kinds that each quota counts. */
const KINDS = {
  contexts: ['ACTIVE_CONTEXT'],
  contextMib: ['CONTEXT'],
  downloadMib: ['DOWNLOAD'],
  recordingMib: ['RECORDING'],
  uploadMib: ['BUILD_ARCHIVE', 'EXTENSION', 'BUNDLE'],
  logMib: ['SESSION_LOG', 'RESULT'],
} as const satisfies Record<QuotaName, readonly StoredKind[]>;
export const QUOTA_NAMES = Object.keys(KINDS) as QuotaName[];

export type QuotaLimits = Readonly<Record<QuotaName, number>>;

/** One blob that is being written. */
export type Arrival = Disposable & {
  /** Counts received bytes. Throws QUOTA_EXCEEDED. */
  add(bytes: number): void;
  /** Writes the row. Throws QUOTA_EXCEEDED; the caller must then remove the file. */
  store(blob: BlobRow): Promise<void>;
};

export type Quotas = ReturnType<typeof openQuotas>;

export function openQuotas({
  store,
  defaults,
}: {
  store: Pick<Store, 'projectStorage' | 'addBlob'>;
  defaults: QuotaLimits;
}) {
  /** In bytes, by project and quota. */
  const arriving = new Map<string, number>();

  async function look(projectId: string) {
    const { stored, quotas } = await store.projectStorage(projectId);
    const own = Object.fromEntries(quotas.map(({ quota, value }) => [quota, value]));
    return { stored, limits: { ...defaults, ...own } };
  }

  return {
    limits: async (projectId: string): Promise<QuotaLimits> => (await look(projectId)).limits,

    async usage(projectId: string): Promise<ProjectStorage> {
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

    /**
     * Throws QUOTA_EXCEEDED when the quota is reached. Protocol logs do not count against results:
     * a log ends at the quota, and cannot be deleted to make room for an invocation.
     */
    async checkResults(projectId: string): Promise<void> {
      const { stored, limits } = await look(projectId);
      const bytes = stored.find(({ kind }) => kind === 'RESULT')?.bytes ?? 0;
      if (bytes >= limits.logMib * MIB) throw quotaExceeded('logMib', limits.logMib);
    },

    /** For store operations that compare themselves: of projects without a quota of their own. */
    usual: (quota: QuotaName): Within => ({ kinds: KINDS[quota], maxBytes: defaults[quota] * MIB }),

    /** `replacedBytes`: size of the replaced content, which does not count. */
    async arrive(projectId: string, kind: BlobKind, replacedBytes = 0): Promise<Arrival> {
      // Builds write bundles: counted but not refused, because their archives were accepted.
      if (kind === 'BUNDLE') return unlimited(store);
      const quota = quotaOf(kind);
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

/** Names the quota and how to free space. */
export function quotaExceeded(quota: QuotaName, limit: number): Fault {
  const unit = quota === 'contexts' ? '' : ' MiB';
  const room =
    quota === 'logMib'
      ? 'Logs and results are removed by their age'
      : 'Delete what is not needed any more';
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

function quotaOf(kind: StoredKind): QuotaName {
  const isCounted = (quota: QuotaName) => (KINDS[quota] as readonly StoredKind[]).includes(kind);
  return must(QUOTA_NAMES.find(isCounted), 'the quota of a kind');
}

function sumOf(stored: readonly Stored[], quota: QuotaName): { count: number; bytes: number } {
  const kinds: readonly StoredKind[] = KINDS[quota];
  const own = stored.filter(({ kind }) => kinds.includes(kind));
  return {
    count: own.reduce((sum, { count }) => sum + count, 0),
    bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
