/** Recordings of sessions, as their project reads them. interface.md 4.2. */
import { Fault, notFound } from '../proto/errors.ts';
import type {
  RecordingDownload,
  SessionServiceService,
} from '../proto/gen/tabern/v1/sessions.pb.ts';
import { notBuilt } from '../proto/rpc.ts';
import type { ProjectCaller, Service } from './call.ts';
import { sessionFinder } from './sessions.ts';
import type { RecordingRow, SessionRow } from './store/types/sessions.ts';
import type { Store } from './store/types.ts';

/** Source: reference.md 2.4. */
const RECORDING_KEPT_MS = 31 * 24 * 3_600_000;

type Methods = Pick<
  typeof SessionServiceService,
  | 'getRecording'
  | 'listReplays'
  | 'getReplay'
  | 'listRecordingDownloads'
  | 'requestRecordingDownloads'
>;

export function recordingService({
  store,
  now,
}: {
  store: Store;
  now: () => number;
}): Service<Methods, ProjectCaller> {
  const find = sessionFinder(store);

  return {
    getRecording: notBuilt,
    listReplays: notBuilt,
    getReplay: notBuilt,
    requestRecordingDownloads: notBuilt,

    /** The order of the refusals is reference.md 4.5's. */
    async listRecordingDownloads({ id }, caller) {
      const session = await find(id, caller);
      if (!isRecorded(session)) {
        throw new Fault('RECORDING_DISABLED', 'Recording was disabled for this session.');
      }
      if (session.endedAt === null) {
        throw new Fault('SESSION_NOT_ENDED', 'The session has not ended.');
      }
      if (session.endedAt + RECORDING_KEPT_MS < now()) {
        throw new Fault('RECORDING_EXPIRED', 'The recording is past its retention of 31 days.');
      }
      const rows = await store.listRecordings(session.id);
      if (rows.length === 0) throw notFound('Recording', session.id);
      return { downloads: rows.map(toDownload) };
    },
  };
}

function isRecorded({ params }: SessionRow): boolean {
  const { browserSettings } = JSON.parse(params) as {
    browserSettings?: { recordSession?: boolean };
  };
  return browserSettings?.recordSession !== false;
}

function toDownload(row: RecordingRow): RecordingDownload {
  return {
    pageId: String(row.pageId),
    status: row.status,
    downloadUrl: undefined,
    completedAt: row.completedAt === null ? undefined : new Date(row.completedAt),
  };
}
