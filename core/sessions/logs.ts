/**
 * Protocol logs of sessions: runners report compressed chunks (core/runners/reports.ts); their
 * project reads the chunks in parts. Size per session and retention are limited.
 * proto/spec/sessions.md 7.
 */
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { SESSION_LOG_MAX_BYTES } from '../../proto/common/limits.ts';
import { SessionLog, type SessionServiceService } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { LogReaders } from '../common/log-readers.ts';
import type { SessionLogChunk } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';
import { sessionFinder } from './sessions.ts';

/** In bytes, of one chunk, before compression. Ours: a runner sends less than one. */
export const LINES_MAX_BYTES = 4 << 20;
/**
 * In bytes, before compression, of one answer. Ours: parsing it takes this thread some
 * milliseconds, and in protobuf it is a few times as long, which must stay below 16 MiB.
 */
const ANSWER_MAX_BYTES = 1 << 20;

const decompress = promisify(zstdDecompress);

type Handlers = Service<typeof SessionServiceService, ProjectCaller>;

export function sessionLogService(
  store: Store,
  readers: Pick<LogReaders, 'note'>,
): Pick<Handlers, 'listSessionLogs'> {
  const find = sessionFinder(store);
  return {
    async listSessionLogs({ id, from = 0 }, caller) {
      const { id: sessionId } = await find(id, caller);
      readers.note(sessionId);
      const wanted = { sessionId, from, maxBytes: ANSWER_MAX_BYTES };
      const { chunks, next, fullAt } = await store.readSessionLog(wanted);
      const logs: SessionLog[] = [];
      for (const chunk of chunks) logs.push(...(await entriesOf(chunk, sessionId)));
      if (fullAt !== undefined) {
        const limit = `${SESSION_LOG_MAX_BYTES >> 20} MiB, or the project's quota \`logMib\``;
        logs.push(warning(sessionId, fullAt, `the log is full (${limit}): no more is kept`));
      }
      const end = (chunks.at(-1)?.number ?? from - 1) + 1;
      return { logs, next, end };
    },
  };
}

/** Only a corrupted Chrome can cause a line that is not a valid entry. */
async function entriesOf(chunk: SessionLogChunk, sessionId: string): Promise<SessionLog[]> {
  const lines = (await decompress(chunk.entries, { maxOutputLength: LINES_MAX_BYTES })).toString();
  let at = 0;
  return lines.split('\n').map((line) => {
    try {
      const entry = SessionLog.fromJSON(JSON.parse(line));
      at = entry.timestamp;
      return { ...entry, sessionId };
    } catch {
      return warning(sessionId, at, 'an entry was damaged and is left out');
    }
  });
}

function warning(sessionId: string, timestamp: number, message: string): SessionLog {
  const method = 'Tabern.warning';
  const params = { message };
  const request = { timestamp, params, rawBody: JSON.stringify({ method, params }) };
  const [response, frameId, loaderId] = [undefined, undefined, undefined];
  return { method, pageId: 0, sessionId, timestamp, request, response, frameId, loaderId };
}
