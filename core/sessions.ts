/**
 * Sessions: PENDING -> RUNNING -> COMPLETED | TIMED_OUT | ERROR. So far each belongs to an
 * invocation, which moves it; what starts and drives one from outside is not built.
 */
import { Fault, notFound } from '../proto/errors.ts';
import {
  type RecordingDownload,
  type Session,
  SessionLog,
  type SessionServiceService,
} from '../proto/gen/tabern/v1/sessions.pb.ts';
import { notBuilt } from '../proto/rpc.ts';
import type { ProjectCaller, Service } from './call.ts';
import { pathId } from './path-id.ts';
import type { RecordingRow, SessionRow } from './store/types/sessions.ts';
import type { Store } from './store/types.ts';

/** The reference's list has no pages. Ours: newest first, and not without end. */
const LISTED_MAX = 1_000;
/** Source: reference.md 2.4. */
const RECORDING_KEPT_MS = 31 * 24 * 3_600_000;

export function sessionService(options: {
  store: Store;
  now: () => number;
}): Service<typeof SessionServiceService, ProjectCaller> {
  const { store, now } = options;

  async function find(id: string, { projectId }: ProjectCaller): Promise<SessionRow> {
    const row = await store.getSession({ id: pathId('id', id), projectId });
    if (!row) throw notFound('Session', id);
    return row;
  }

  return {
    createSession: notBuilt,
    updateSession: notBuilt,
    deleteSession: notBuilt,
    locateSession: notBuilt,
    getLiveView: notBuilt,
    getRecording: notBuilt,
    listReplays: notBuilt,
    getReplay: notBuilt,
    requestRecordingDownloads: notBuilt,

    async getSession({ id }, caller) {
      return { session: toProto(await find(id, caller)) };
    },

    async listSessions({ status, q }, { projectId }) {
      if (q !== undefined) return notBuilt();
      const rows = await store.listSessions({ projectId, status, max: LISTED_MAX });
      return { sessions: rows.map(toProto) };
    },

    async listSessionLogs({ id }, caller) {
      const session = await find(id, caller);
      const entries = await store.listSessionLogs(session.id);
      return { logs: entries.map((entry) => SessionLog.fromJSON(JSON.parse(entry))) };
    },

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

function toProto(row: SessionRow): Session {
  return {
    id: row.id,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    projectId: row.projectId,
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : new Date(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    status: row.status,
    proxyBytes: row.proxyBytes,
    keepAlive: row.keepAlive,
    contextId: row.contextId ?? undefined,
    region: row.region,
    userMetadata: row.userMetadata === null ? undefined : JSON.parse(row.userMetadata),
    connectUrl: undefined,
    seleniumRemoteUrl: undefined,
    signingKey: undefined,
  };
}
