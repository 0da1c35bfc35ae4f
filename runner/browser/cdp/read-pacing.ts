/**
 * Paces reading from Chrome's pipe. Network events, seven for each request of a page, are read a
 * millisecond's worth at a time, because a read, and the write to the client that follows it, cost
 * as much as all other work on a message. While a response is pending, and after any other message,
 * reading is not paced.
 */
import type { Readable } from 'node:stream';

const REST_MS = 1;
/** Ours: a response that takes longer than this may be delayed by one pause. */
const ASKED_LATELY_MS = 100;
const NEWS = '{"method":"Network.';
/** A request waits for the answer to this event. */
const QUESTION = `${NEWS}requestIntercepted`;
/** Responses begin with these; the second is for a session that is gone. */
const ANSWERS = ['{"id":', '{"error":'];

export type Pace = Disposable & {
  /** A command was sent to Chrome. */
  asked(): void;
  /** One message was received. */
  heard(message: Buffer): void;
  /** All available data was read, and the last message is complete. */
  read(): void;
};

/**
 * The handle inside Node's sockets, which no stream type promises. Without it, reading is not
 * paced.
 */
type Inside = { _handle?: { readStart?(): unknown; readStop?(): unknown } };

type Options = { restMs?: number; now?: () => number };

export function openPace(fromChrome: Readable, options: Options = {}): Pace {
  const { restMs = REST_MS, now = () => performance.now() } = options;
  /**
   * Times of pending commands. A response is matched with the last one, because slow commands come
   * first.
   */
  let unanswered: number[] = [];
  let isNewsOnly = true;
  let rest: NodeJS.Timeout | undefined;

  /** stream.pause() does not help: Node still reads 64 KiB ahead, message by message. */
  const inside = () => (fromChrome as Inside)._handle;
  const goOn = (): void => {
    if (rest === undefined) return;
    clearTimeout(rest);
    rest = undefined;
    inside()?.readStart?.();
  };
  const isAwaited = (): boolean => {
    const last = unanswered.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (now() - last < ASKED_LATELY_MS) return true;
    unanswered = [];
    return false;
  };
  return {
    asked() {
      unanswered.push(now());
      goOn();
    },
    heard(message) {
      const head = message.toString('latin1', 0, QUESTION.length);
      isNewsOnly &&= head.startsWith(NEWS) && head !== QUESTION;
      if (ANSWERS.some((start) => head.startsWith(start))) unanswered.pop();
    },
    read() {
      if (isNewsOnly && rest === undefined && !isAwaited()) {
        inside()?.readStop?.();
        rest = setTimeout(goOn, restMs);
      }
      isNewsOnly = true;
    },
    [Symbol.dispose]: goOn, // the end of the stream must still be read
  };
}
