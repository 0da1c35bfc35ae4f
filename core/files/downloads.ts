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
import { invalidField } from '../../proto/rpc/errors.ts';
import { checkAdded, LATE_MS, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readOffsets } from '../api/pagination.ts';
import { newId, pathId } from '../common/ids.ts';
import type { DownloadRow } from '../store/types/files.ts';
import type { Store } from '../store/types.ts';
import type { Blobs } from './blobs.ts';

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
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is for them.
const HOSTILE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function downloadService({
  store,
  files,
}: {
  store: Store;
  files: Pick<Blobs, 'remove'>;
}): Service<typeof DownloadServiceService, ProjectCaller> {
  async function checkedSession(text: string, projectId: string): Promise<string> {
    const id = pathId('sessionId', text);
    return orNotFound(await store.getSession({ id, projectId }), 'Session', id).id;
  }

  return {
    async listDownloads(request, { projectId }) {
      const { sessionId: named, filter, page } = readList(request);
      const sessionId = await checkedSession(named, projectId);
      const wanted = { ...filter, ...page, sessionId, projectId };
      const { rows, total } = await store.listDownloads(wanted);
      return { downloads: rows.map(toProto), total, ...page };
    },

    async getDownload(request, { projectId }) {
      const id = pathId('id', request.id);
      const row = orNotFound(await store.getDownload({ id, projectId }), 'Download', id);
      return { download: toProto(row), blobId: row.blobId };
    },

    async deleteDownload(request, { projectId }) {
      const id = pathId('id', request.id);
      const blobId = await store.deleteDownload({ id, projectId });
      await files.remove(orNotFound(blobId, 'Download', id));
      return {};
    },

    async deleteSessionDownloads(request, { projectId }) {
      const sessionId = await checkedSession(request.sessionId, projectId);
      let blobIds: string[];
      do {
        blobIds = await store.deleteSessionDownloads({ sessionId, projectId, max: BATCH });
        await files.remove(...blobIds);
      } while (blobIds.length === BATCH);
      return {};
    },
  };
}

/** For runners. Throws LEASE_LOST, or INVALID_FIELD for a blob that the lease may not add. */
export async function addDownload(
  { store, now }: { store: Store; now: () => number },
  { leaseId, blobId, filename: suggested }: AddDownloadRequest,
): Promise<Record<string, never>> {
  const filename = cleanName(suggested);
  const mimeType = mime.lookup(filename) || UNKNOWN_TYPE;
  const at = now();
  const download = { id: newId(), blobId, filename, mimeType, at };
  const added = await store.addDownload({ ...download, leaseId, endedAfter: at - LATE_MS });
  checkAdded(added, { leaseId, what: 'download' });
  return {};
}

/** The file name that a page suggested, as a plain name for storage and display. */
export function cleanName(suggested: string): string {
  const name = suggested.toWellFormed().split(/[/\\]/).at(-1) ?? '';
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

function toProto({ createdAt, ...row }: DownloadRow): Download {
  const { id, sessionId, filename, mimeType, size, sha256: checksum } = row;
  return { id, sessionId, filename, mimeType, size, checksum, createdAt: new Date(createdAt) };
}
