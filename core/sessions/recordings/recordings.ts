/**
 * Recordings of sessions, as their project reads them: downloads of whole videos, and replays by
 * their parts. proto/spec/sessions.md 8. A page's download:
 *   NOT_REQUESTED --POST--> PENDING --all parts stored, or LATE_MS after the end--> COMPLETED,
 *   or FAILED without any part
 * The video is stored in any case: a request only changes what is shown.
 */

import type {
  RecordingDownload,
  SessionServiceService,
} from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField, notFound } from '../../../proto/rpc/errors.ts';
import { LATE_MS } from '../../api/checks.ts';
import type { ProjectCaller, Service } from '../../api/interceptors.ts';
import { openRate } from '../../common/rate-limit.ts';
import type { Blobs } from '../../files/blobs.ts';
import type { RecordingRow } from '../../store/types/recordings.ts';
import type { SessionRow } from '../../store/types/sessions.ts';
import type { Store } from '../../store/types.ts';
import { sessionFinder } from '../sessions.ts';
import { unreadable } from './content.ts';
import type { RecordingLinks } from './links.ts';

const DAY_MS = 86_400_000;
/** Of each project. Source: proto/spec/rest.md 4. */
const REQUESTS = { limit: 5, periodMs: 60_000, what: 'recording requests' };
const PLAYLISTS = { limit: 120, periodMs: 60_000, what: 'playlists' };
const REQUESTABLE: readonly RecordingDownload['status'][] = ['NOT_REQUESTED', 'FAILED'];
const PAGE_ID = /^\d{1,3}$/;

type Handlers = Service<typeof SessionServiceService, ProjectCaller>;
type DownloadNames = 'listRecordingDownloads' | 'requestRecordingDownloads';
type ReplayNames = 'getRecording' | 'listReplays' | 'getReplay';

type RecordingOptions = {
  store: Store;
  files: Pick<Blobs, 'exists'>;
  links: Pick<RecordingLinks, 'part' | 'file'>;
  now: () => number;
  /** Retention in days, from the session's end. */
  keptDays: number;
};

export function recordingService(options: RecordingOptions) {
  return { ...downloads(options), ...replays(options) };
}

function downloads(options: RecordingOptions): Pick<Handlers, DownloadNames> {
  const { store, links, now, keptDays } = options;
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
    const shown = rows.map((row) => {
      const named = { sessionId: session.id, pageId: row.pageId, projectId: session.projectId };
      return toDownload(row, { endedAt, now: now(), url: () => links.file({ ...named, keyId }) });
    });
    return { sessionId: session.id, downloads: shown };
  }

  return {
    async listRecordingDownloads({ id }, caller) {
      const { downloads } = await recorded(id, caller);
      return { downloads };
    },

    async requestRecordingDownloads({ id }, caller) {
      requests.take(caller.projectId);
      const { sessionId, downloads } = await recorded(id, caller);
      const requested = downloads.filter(({ status }) => REQUESTABLE.includes(status));
      const pageIds = requested.map(({ pageId }) => Number(pageId));
      await store.requestRecordings({ sessionId, pageIds, at: now() });
      for (const one of requested) one.status = 'PENDING';
      return { downloads };
    },
  };
}

function replays({ store, links, now }: RecordingOptions): Pick<Handlers, ReplayNames> {
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
        .map(({ pageId, url, startMs: startTimeMs, endMs: endTimeMs }) => {
          return { pageId: String(pageId), url, startTimeMs, endTimeMs };
        });
      return { pages, pageCount: pages.length };
    },

    async getReplay({ id, pageId }, caller) {
      if (!PAGE_ID.test(pageId)) throw invalidField('pageId', 'must be 1 to 3 digits.');
      // holders of links must not use up what the project itself may request
      playlists.take(caller.until === undefined ? caller.projectId : `shared ${caller.projectId}`);
      const session = await find(id, caller);
      const named = { sessionId: session.id, pageId: Number(pageId), projectId: session.projectId };
      const [rows, parts] = await Promise.all([
        store.listRecordings(session.id),
        store.listRecordingParts(named),
      ]);
      const by = { keyId: caller.keyId, until: caller.until };
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

/** Whether the runner can no longer add parts. */
function isOver(endedAt: number | null, now: number): boolean {
  return endedAt !== null && endedAt + LATE_MS < now;
}

/** Throws RECORDING_STORE when a part's file cannot be read. */
async function checkStore(
  { store, files }: RecordingOptions,
  { id: sessionId, projectId }: SessionRow,
  rows: readonly RecordingRow[],
): Promise<void> {
  for (const { pageId } of rows.filter(({ segments }) => segments > 0)) {
    const [part] = await store.listRecordingParts({ sessionId, projectId, pageId });
    if (part === undefined) continue;
    const isStored = await files.exists(part.blobId).catch((error: unknown) => {
      throw unreadable(error);
    });
    if (!isStored) throw unreadable(new Error(`no file of the blob ${part.blobId}`));
  }
}

function toDownload(
  { pageId, requestedAt, completedAt, segments }: RecordingRow,
  { endedAt, now, url }: { endedAt: number; now: number; url: () => string },
): RecordingDownload {
  const lastAt = completedAt ?? (isOver(endedAt, now) ? endedAt + LATE_MS : undefined);
  const shown = { pageId: String(pageId), downloadUrl: undefined, completedAt: undefined };
  if (requestedAt === null) return { ...shown, status: 'NOT_REQUESTED' };
  if (lastAt === undefined) return { ...shown, status: 'PENDING' };
  if (segments === 0) return { ...shown, status: 'FAILED' };
  const done = {
    status: 'COMPLETED',
    completedAt: new Date(Math.max(lastAt, requestedAt)),
  } as const;
  return { ...shown, ...done, downloadUrl: url() };
}
