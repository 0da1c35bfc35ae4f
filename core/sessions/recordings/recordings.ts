/**
 * Recordings of sessions, as their project reads them: downloads of whole videos, and replays by
 * their parts. proto/spec/sessions.md 8. A page's download:
 *   NOT_REQUESTED --POST--> PENDING --the runner brought all, or its time is over--> COMPLETED,
 *   or FAILED when nothing of it came
 * The video is there without being asked for: asking decides what is shown, and costs nothing.
 */
import { access } from 'node:fs/promises';
import type { AddRecordingRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import type {
  RecordingDownload,
  SessionServiceService,
} from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField, notFound } from '../../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../../api/interceptors.ts';
import { openRate } from '../../common/rate-limit.ts';
import { cutUtf8 } from '../../delivery/envelope.ts';
import type { BlobFiles } from '../../files/blob-files.ts';
import type { Quotas } from '../../projects/quotas.ts';
import type { RecordingRow } from '../../store/types/recordings.ts';
import type { SessionRow } from '../../store/types/sessions.ts';
import type { Store } from '../../store/types.ts';
import { sessionFinder } from '../sessions.ts';
import type { RecordingLinks } from './links.ts';

const DAY_MS = 86_400_000;
/** Of each project. Source: proto/spec/rest.md 4. */
const REQUESTS = { limit: 5, periodMs: 60_000, what: 'recording requests' };
const PLAYLISTS = { limit: 120, periodMs: 60_000, what: 'playlists' };
const PAGE_ID = /^\d{1,3}$/;

type Methods = Pick<
  typeof SessionServiceService,
  | 'getRecording'
  | 'listReplays'
  | 'getReplay'
  | 'listRecordingDownloads'
  | 'requestRecordingDownloads'
>;

export type RecordingOptions = {
  store: Store;
  files: Pick<BlobFiles, 'path'>;
  links: Pick<RecordingLinks, 'part' | 'file'>;
  now: () => number;
  /** From its session's end, in days. */
  keptDays: number;
};

export function recordingService(options: RecordingOptions): Service<Methods, ProjectCaller> {
  return { ...downloads(options), ...replays(options) };
}

type DownloadMethods = Pick<Methods, 'listRecordingDownloads' | 'requestRecordingDownloads'>;

function downloads(options: RecordingOptions): Service<DownloadMethods, ProjectCaller> {
  const { store, now, keptDays } = options;
  const find = sessionFinder(store);
  const requests = openRate({ ...REQUESTS, now });

  /** The order of the refusals: proto/spec/sessions.md 8. */
  async function recorded(id: string, caller: ProjectCaller) {
    const session = await find(id, caller);
    if (!isRecorded(session)) {
      throw new Fault('RECORDING_DISABLED', 'Recording was disabled for this session.');
    }
    const { endedAt } = session;
    if (endedAt === null) throw new Fault('SESSION_NOT_ENDED', 'The session has not ended.');
    if (endedAt + keptDays * DAY_MS < now()) {
      const message = `The recording is past its retention of ${keptDays} days.`;
      throw new Fault('RECORDING_EXPIRED', message);
    }
    const rows = await store.listRecordings(session.id);
    if (rows.length === 0) throw notFound('Recording', session.id);
    await checkStore(options, session, rows);
    const { keyId } = caller;
    const judge = { endedAt, session, keyId, now: now() };
    return { session, rows, show: (row: RecordingRow) => toDownload(row, judge, options) };
  }

  return {
    async listRecordingDownloads({ id }, caller) {
      const { rows, show } = await recorded(id, caller);
      return { downloads: rows.map(show) };
    },

    async requestRecordingDownloads({ id }, caller) {
      requests.take(caller.projectId);
      const { session, rows, show } = await recorded(id, caller);
      const shown = rows.map(show);
      const fresh = rows.filter((_, index) => {
        const status = shown[index]?.status;
        return status === 'NOT_REQUESTED' || status === 'FAILED';
      });
      const pageIds = fresh.map(({ pageId }) => pageId);
      await store.requestRecordings({ sessionId: session.id, pageIds, at: now() });
      const asked = new Set(pageIds.map(String));
      return {
        downloads: shown.map((one) =>
          asked.has(one.pageId) ? { ...one, status: 'PENDING', completedAt: undefined } : one,
        ),
      };
    },
  };
}

function replays(
  options: RecordingOptions,
): Service<Omit<Methods, keyof DownloadMethods>, ProjectCaller> {
  const { store, links, now } = options;
  const find = sessionFinder(store);
  const playlists = openRate({ ...PLAYLISTS, now });
  return {
    async getRecording({ id }, caller) {
      await find(id, caller);
      return { events: [] };
    },

    async listReplays({ id }, caller) {
      const session = await find(id, caller);
      const rows = await store.listRecordings(session.id);
      const pages = rows
        .filter(({ segments }) => segments > 0)
        .map(({ pageId, url, startMs, endMs }) => {
          return { pageId: String(pageId), url, startTimeMs: startMs, endTimeMs: endMs };
        });
      return { pages, pageCount: pages.length };
    },

    async getReplay({ id, pageId }, caller) {
      if (!PAGE_ID.test(pageId)) throw invalidField('pageId', 'must be 1 to 3 digits.');
      playlists.take(caller.projectId);
      const session = await find(id, caller);
      const named = { sessionId: session.id, pageId: Number(pageId), projectId: session.projectId };
      const [rows, parts] = await Promise.all([
        store.listRecordings(session.id),
        store.listRecordingParts(named),
      ]);
      const by = { keyId: caller.keyId };
      const row = rows.find((one) => one.pageId === named.pageId);
      const [start, ...segments] = parts;
      if (!row || start === undefined || segments.length === 0) throw notFound('Replay', pageId);
      return {
        initUrl: links.part({ ...named, ...by, number: start.number }),
        segments: segments.map(({ number, startMs, endMs }) => ({
          url: links.part({ ...named, ...by, number }),
          duration: (endMs - startMs) / 1_000,
        })),
        live: row.completedAt === null && !isOver(session.endedAt, now()),
      };
    },
  };
}

function isRecorded({ params }: SessionRow): boolean {
  const { browserSettings } = JSON.parse(params) as {
    browserSettings?: { recordSession?: boolean };
  };
  return browserSettings?.recordSession !== false;
}

/** Whether nothing can come any more. */
function isOver(endedAt: number | null, now: number): boolean {
  return endedAt !== null && endedAt + LATE_MS < now;
}

/** What is to be given out must be there to be read. */
async function checkStore(
  { store, files }: RecordingOptions,
  { id: sessionId, projectId }: SessionRow,
  rows: readonly RecordingRow[],
): Promise<void> {
  for (const { pageId } of rows.filter(({ segments }) => segments > 0)) {
    const [part] = await store.listRecordingParts({ sessionId, projectId, pageId });
    if (part === undefined) continue;
    await access(files.path(part.blobId)).catch((error: unknown) => {
      const said = 'Failed to reach the recording service. Retry the request.';
      throw new Fault('RECORDING_STORE', said, {}, error);
    });
  }
}

function toDownload(
  row: RecordingRow,
  {
    endedAt,
    session,
    keyId,
    now,
  }: { endedAt: number; session: SessionRow; keyId: string | undefined; now: number },
  { links }: RecordingOptions,
): RecordingDownload {
  const { pageId, requestedAt, segments } = row;
  const named = { sessionId: session.id, pageId, projectId: session.projectId };
  const lastAt = row.completedAt ?? (isOver(endedAt, now) ? endedAt + LATE_MS : undefined);
  const shown = { pageId: String(pageId), downloadUrl: undefined, completedAt: undefined };
  if (requestedAt === null) return { ...shown, status: 'NOT_REQUESTED' };
  if (lastAt === undefined) return { ...shown, status: 'PENDING' };
  if (segments === 0) return { ...shown, status: 'FAILED' };
  const completedAt = new Date(Math.max(lastAt, requestedAt));
  return {
    ...shown,
    status: 'COMPLETED',
    completedAt,
    downloadUrl: links.file({ ...named, keyId }),
  };
}

/** Source: runners.proto. */
export const LATE_MS = 600_000;
/** Three digits. Source: proto/spec/sessions.md 8. */
const PAGE_MAX = 999;
/** Ours: a segment of a page that draws without end has some seconds; a session six hours. */
const NUMBER_MAX = 100_000;
/** In bytes. Ours: it is shown, not followed. */
const URL_MAX_BYTES = 2 << 10;
/** In ms. Ours: beyond a session's longest life. */
const OFFSET_MAX_MS = 7 * 3_600_000;

type Options = {
  store: Pick<Store, 'addRecording' | 'findLease'>;
  quotas: Pick<Quotas, 'checkRoom'>;
  now: () => number;
};

/**
 * Throws LEASE_LOST, INVALID_FIELD for a blob that is not its to add, or QUOTA_EXCEEDED for a page
 * of which nothing could be kept.
 */
export async function addRecording(
  { store, quotas, now }: Options,
  request: AddRecordingRequest,
): Promise<Record<string, never>> {
  const { leaseId, pageId, number, blobId = null, url, complete } = request;
  if (pageId > PAGE_MAX) throw invalidField('pageId', `must be at most ${PAGE_MAX}.`);
  if (number > NUMBER_MAX) throw invalidField('number', `must be at most ${NUMBER_MAX}.`);
  if (blobId === null && !complete) {
    const lease = await store.findLease(leaseId);
    if (lease) await quotas.checkRoom(lease.projectId, 'RECORDING');
  }
  const at = now();
  const added = await store.addRecording({
    leaseId,
    pageId,
    number,
    blobId,
    complete,
    at,
    endedAfter: at - LATE_MS,
    startMs: offsetOf('startMs', request.startMs),
    endMs: offsetOf('endMs', request.endMs),
    url: cutUtf8(url, URL_MAX_BYTES),
  });
  switch (added) {
    case 'lost':
      throw new Fault('LEASE_LOST', 'The lease is lost or has ended.', { leaseId });
    case 'refused':
      throw invalidField('blobId', 'must be a recording written under this lease.');
    case 'added':
      return {};
  }
}

function offsetOf(field: string, ms: number): number {
  if (Number.isFinite(ms) && ms >= 0 && ms <= OFFSET_MAX_MS) return Math.round(ms);
  throw invalidField(field, `must be 0 to ${OFFSET_MAX_MS}.`);
}
