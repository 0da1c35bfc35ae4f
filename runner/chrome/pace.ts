/**
 * How eagerly Chrome's pipe is read. News of requests, seven for each that a page makes, are read a
 * millisecond's worth at a time: a read, and the write to the client that follows it, cost as much
 * as all else that is done with a message. Whatever else comes is read at once, and so are news
 * while somebody waits for an answer.
 */
import type { Readable } from 'node:stream';

const REST_MS = 1;
/** Ours: an answer that took so long may come that much later. */
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
  /** Of what was read, that was all. */
  read(): void;
};

/** What Node's sockets have and no stream promises: without it there is no rest. */
type Handle = { readStart?(): unknown; readStop?(): unknown };

export function openPace(fromChrome: Readable, restMs = REST_MS): Pace {
  let unanswered = 0;
  let askedAt = 0;
  let isNewsOnly = true;
  let rest: NodeJS.Timeout | undefined;

  /** pause() would not do: Node then reads 64 KiB ahead, message by message all the same. */
  const handle = (): Handle | undefined => (fromChrome as { _handle?: Handle })._handle;
  const goOn = (): void => {
    if (rest === undefined) return;
    clearTimeout(rest);
    rest = undefined;
    handle()?.readStart?.();
  };
  return {
    asked() {
      unanswered += 1;
      askedAt = performance.now();
      goOn();
    },
    heard(message) {
      const head = message.toString('latin1', 0, QUESTION.length);
      isNewsOnly &&= head.startsWith(NEWS) && head !== QUESTION;
      if (ANSWERS.some((start) => head.startsWith(start))) unanswered = Math.max(0, unanswered - 1);
    },
    read() {
      const isAwaited = unanswered > 0 && performance.now() - askedAt < ASKED_LATELY_MS;
      if (isNewsOnly && !isAwaited && rest === undefined) {
        handle()?.readStop?.();
        rest = setTimeout(goOn, restMs);
      }
      isNewsOnly = true;
    },
    [Symbol.dispose]: () => clearTimeout(rest),
  };
}
