/**
 * The log of a build on its way to core: numbered lines, sent in batches, in order, one batch at a
 * time. A batch that fails is sent again with the same numbers, so no line is lost or doubled. A
 * log that cannot be sent never fails a build.
 */
import type { AppendLogsRequest_Line } from '../../proto/gen/tabern/v1/runners.pb.ts';

/** Ours: soon enough to read along. */
const FLUSH_AFTER_MS = 200;
/** Source: runners.proto. */
const BATCH_LINES_MAX = 1_000;
/** Of one line, in characters; the rest is cut. Ours. */
const LINE_MAX_CHARACTERS = 4_096;
/** Of one build. Ours: what comes later is dropped, and the log says so. */
const LINES_MAX = 10_000;
/** At the end. Ours: what core does not take by then is given up. */
const CLOSE_TRIES = 3;

export type Level = 'log' | 'info' | 'warn' | 'error' | 'debug';

export type BuildLog = {
  /** One line, or several when the message has line breaks. */
  line(level: Level, message: string): void;
  /** Sends what is left. Nothing may be written after. */
  close(): Promise<void>;
};

export type Append = (first: number, lines: AppendLogsRequest_Line[]) => Promise<void>;

export function openBuildLog(options: {
  append: Append;
  now: () => number;
  /** Told of each batch that could not be sent. */
  onError: (error: unknown) => void;
}): BuildLog {
  const waiting: AppendLogsRequest_Line[] = [];
  let sent = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<boolean> | undefined;

  async function send(): Promise<boolean> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_LINES_MAX);
      try {
        await options.append(sent, batch);
      } catch (error) {
        options.onError(error);
        return false;
      }
      sent += batch.length;
      waiting.splice(0, batch.length);
    }
    return true;
  }

  function flush(): Promise<boolean> {
    clearTimeout(timer);
    timer = undefined;
    sending ??= send().finally(() => {
      sending = undefined;
    });
    return sending;
  }

  function add(level: Level, message: string): void {
    const count = sent + waiting.length;
    if (count > LINES_MAX) return;
    const text = count === LINES_MAX ? 'the log is too long: the rest is dropped' : message;
    waiting.push({
      level: count === LINES_MAX ? 'warn' : level,
      message: text.slice(0, LINE_MAX_CHARACTERS),
      timestamp: options.now(),
    });
    timer ??= setTimeout(() => void flush(), FLUSH_AFTER_MS);
  }

  return {
    line(level, message) {
      for (const one of message.split(/\r?\n/)) add(level, one);
    },
    async close() {
      for (let tries = 0; tries < CLOSE_TRIES && (waiting.length > 0 || sending); tries++) {
        await flush();
      }
      clearTimeout(timer);
    },
  };
}
