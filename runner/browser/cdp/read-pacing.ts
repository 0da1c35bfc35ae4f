/**
 * Paces reading from Chrome's pipe. Network events, seven for each request of a page, are read a
 * millisecond's worth at a time, because a read, and the write to the client that follows it, cost
 * as much as all other work on a message. While a response is pending, and after any other message,
 * reading is not paced.
 */
import type { Readable } from 'node:stream';

const PAUSE_MS = 1;
/** Ours: a response that takes longer than this may be delayed by one pause. */
const RECENT_MS = 100;
const NETWORK_EVENT = '{"method":"Network.';
/** A request waits for the answer to this event. */
const INTERCEPTED = `${NETWORK_EVENT}requestIntercepted`;
/** Responses begin with these; the second is for a session that is gone. */
const ANSWERS = ['{"id":', '{"error":'];

/**
 * The handle inside Node's sockets, which no stream type promises. Without it, reading is not
 * paced.
 */
type Inside = { _handle?: { readStart?(): unknown; readStop?(): unknown } };

type Options = { pauseMs?: number; now?: () => number };

export function openPace(fromChrome: Readable, options: Options = {}) {
  const { pauseMs = PAUSE_MS, now = () => performance.now() } = options;
  /**
   * Times of pending commands. A response is matched with the last one, because slow commands come
   * first.
   */
  let pending: number[] = [];
  let isNetworkOnly = true;
  let timer: NodeJS.Timeout | undefined;

  /** stream.pause() does not help: Node still reads 64 KiB ahead, message by message. */
  const inside = () => (fromChrome as Inside)._handle;
  const resume = (): void => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    inside()?.readStart?.();
  };
  const isResponsePending = (): boolean => {
    const last = pending.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (now() - last < RECENT_MS) return true;
    pending = [];
    return false;
  };
  return {
    /** A command was sent to Chrome. */
    onCommand() {
      pending.push(now());
      resume();
    },
    /** One message was received. */
    onMessage(message: Buffer) {
      const head = message.toString('latin1', 0, INTERCEPTED.length);
      isNetworkOnly &&= head.startsWith(NETWORK_EVENT) && head !== INTERCEPTED;
      if (ANSWERS.some((start) => head.startsWith(start))) pending.pop();
    },
    /** All available data was read, and the last message is complete. */
    onRead() {
      if (isNetworkOnly && timer === undefined && !isResponsePending()) {
        inside()?.readStop?.();
        timer = setTimeout(resume, pauseMs);
      }
      isNetworkOnly = true;
    },
    [Symbol.dispose]: resume, // the end of the stream must still be read
  };
}
