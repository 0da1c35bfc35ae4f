/**
 * The service of downloads: files that the pages of a session downloaded, one stored file (blob)
 * each. A runner adds a download when it is complete. The project or retention
 * (core/maintenance/retention.ts) removes it. proto/spec/sessions.md 9.
 */
import mime from 'mime-types';
import type {
  Download,
  DownloadServiceService,
  ListDownloadsRequest,
} from '../../proto/gen/tabern/v1/downloads.pb.ts';
import type { AddDownloadRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readOffsets } from '../api/pagination.ts';
import { newId, pathId } from '../common/ids.ts';
import type { DownloadRow } from '../store/types/files.ts';
import type { Store } from '../store/types.ts';
import type { BlobFiles } from './blob-files.ts';

/** In characters, of a filter. Source: proto/spec/sessions.md 9. */
const TEXT_MAX = 255;
/** In characters of a file name. Ours: the limit of file systems, with room for a suffix. */
const NAME_MAX = 200;
/** Length of the kept extension when a name is truncated. */
const ENDING_MAX = 20;
const UNKNOWN_TYPE = 'application/octet-stream';
/** Rows per operation: other operations commit in between. */
const BATCH = 500;
/** Characters that would control a terminal, or display a name as another. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
const HOSTILE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

type Options = {
  store: Store;
  files: Pick<BlobFiles, 'remove'>;
  now: () => number;
};

export function downloadService({
  store,
  files,
}: Options): Service<typeof DownloadServiceService, ProjectCaller> {
  async function checkSession(field: string, text: string, projectId: string): Promise<string> {
    const id = pathId(field, text);
    if (!(await store.getSession({ id, projectId }))) throw notFound('Session', id);
    return id;
  }

  return {
    async listDownloads(request, { projectId }) {
      const { sessionId: named, filter, page } = readList(request);
      const sessionId = await checkSession('sessionId', named, projectId);
      const wanted = { ...filter, ...page, sessionId, projectId };
      const { rows, total } = await store.listDownloads(wanted);
      return { downloads: rows.map(toProto), total, ...page };
    },

    async getDownload(request, { projectId }) {
      const id = pathId('id', request.id);
      const row = await store.getDownload({ id, projectId });
      if (!row) throw notFound('Download', id);
      return { download: toProto(row), blobId: row.blobId };
    },

    async deleteDownload(request, { projectId }) {
      const id = pathId('id', request.id);
      const blobId = await store.deleteDownload({ id, projectId });
      if (blobId === undefined) throw notFound('Download', id);
      await files.remove(blobId);
      return {};
    },

    async deleteSessionDownloads(request, { projectId }) {
      const sessionId = await checkSession('sessionId', request.sessionId, projectId);
      let blobIds: string[];
      do {
        blobIds = await store.deleteSessionDownloads({ sessionId, projectId, max: BATCH });
        await Promise.all(blobIds.map((blobId) => files.remove(blobId)));
      } while (blobIds.length === BATCH);
      return {};
    },
  };
}

/** For runners. Throws LEASE_LOST, or INVALID_FIELD for a blob that the lease may not add. */
export async function addDownload(
  { store, now }: Pick<Options, 'store' | 'now'>,
  { leaseId, blobId, filename: said }: AddDownloadRequest,
): Promise<Record<string, never>> {
  const filename = cleanName(said);
  const mimeType = mime.lookup(filename) || UNKNOWN_TYPE;
  const wanted = { leaseId, id: newId(), blobId, filename, mimeType, at: now() };
  switch (await store.addDownload(wanted)) {
    case 'lost':
      throw new Fault('LEASE_LOST', 'The lease is lost or has ended.', { leaseId });
    case 'refused':
      throw invalidField('blobId', 'must be a download written under this lease.');
    case 'added':
      return {};
  }
}

/** The file name that a page suggested, as a plain name for storage and display. */
export function cleanName(said: string): string {
  const name = said.toWellFormed().split(/[/\\]/).at(-1) ?? '';
  const plain = name.replace(HOSTILE, '').trim();
  if (/^\.*$/.test(plain)) return 'download';
  const characters = [...plain];
  if (characters.length <= NAME_MAX) return plain;
  const ending = /\.[^.]+$/.exec(plain)?.[0] ?? '';
  const kept = [...ending].length <= ENDING_MAX ? ending : '';
  return characters.slice(0, NAME_MAX - [...kept].length).join('') + kept;
}

function readList(request: ListDownloadsRequest) {
  const { sessionId, filename, mimeType, minSize, maxSize } = request;
  if (sessionId === '') throw invalidField('sessionId', 'is required.');
  for (const [field, text] of Object.entries({ filename, mimeType })) {
    if (text !== undefined && [...text].length > TEXT_MAX) {
      throw invalidField(field, `must be at most ${TEXT_MAX} characters.`);
    }
  }
  for (const [field, size] of Object.entries({ minSize, maxSize })) {
    if (size !== undefined && !(size >= 0)) throw invalidField(field, 'must be 0 or more.');
  }
  const createdAfter = request.createdAfter?.getTime();
  const createdBefore = request.createdBefore?.getTime();
  const filter = { filename, mimeType, minSize, maxSize, createdAfter, createdBefore };
  return { sessionId, filter, page: readOffsets(request) };
}

function toProto(row: DownloadRow): Download {
  return {
    id: row.id,
    sessionId: row.sessionId,
    filename: row.filename,
    mimeType: row.mimeType,
    size: row.size,
    checksum: row.sha256,
    createdAt: new Date(row.createdAt),
  };
}
