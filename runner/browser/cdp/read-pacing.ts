/**
 * How eagerly Chrome's pipe is read. News of requests, seven for each that a page makes, are read a
 * millisecond's worth at a time: a read, and the write to the client that follows it, cost as much
 * as all else that is done with a message. While somebody waits for an answer, and after anything
 * else, there is no such rest.
 */
import type { Readable } from 'node:stream';

const REST_MS = 1;
/** Ours: an answer that took so long may come a rest later. */
const ASKED_LATELY_MS = 100;
const NEWS = '{"method":"Network.';
/** This one a request waits for. */
const QUESTION = `${NEWS}requestIntercepted`;
/** How answers begin; the second one of a session that has gone. */
const ANSWERS = ['{"id":', '{"error":'];

export type Pace = Disposable & {
  /** Chrome is asked something. */
  asked(): void;
  /** One message of what was read. */
  heard(message: Buffer): void;
  /** Of what was read, that was all, and the last message is whole. */
  read(): void;
};

/** What Node's sockets have within and no stream promises: without it there is no rest. */
type Inside = { _handle?: { readStart?(): unknown; readStop?(): unknown } };

type Options = { restMs?: number; now?: () => number };

export function openPace(fromChrome: Readable, options: Options = {}): Pace {
  const { restMs = REST_MS, now = () => performance.now() } = options;
  /** When; an answer is taken for that to the last, as what takes long lies behind. */
  let unanswered: number[] = [];
  let isNewsOnly = true;
  let rest: NodeJS.Timeout | undefined;

  /** pause() would not do: Node then reads 64 KiB ahead, message by message all the same. */
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
    [Symbol.dispose]: goOn, // the end of the stream is still to be read
  };
}
