/**
 * Measures Chrome's response time on a sample of client commands: one at a time, ten a second at
 * most, so that measuring costs little. Only with metrics enabled.
 */
import type { Family, Metrics } from '../../../proto/common/metrics.ts';
import type { Pipe } from './pipe.ts';

const ROUND_TRIP: Family = {
  name: 'tabern_cdp_round_trip_seconds',
  help: 'From a command until its response, sampled; commands may wait for a page.',
  buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
};
/** In milliseconds, between two samples of one Chrome. */
const PERIOD_MS = 100;
/** In bytes: longer commands are not sampled. */
const COMMAND_MAX = 4_096;

type Sample = { cdpSessionId: string; head: Buffer; sentAt: number };

/** Wraps the pipe with measurement. */
export function metered(pipe: Pipe, metrics: Metrics): Pipe {
  let sample: Sample | undefined;
  let nextAt = 0;

  const sent = (message: Buffer): void => {
    const at = performance.now();
    if (sample !== undefined || at < nextAt || message.length > COMMAND_MAX) return;
    nextAt = at + PERIOD_MS;
    const { id, sessionId } = JSON.parse(message.toString()) as { id?: number; sessionId?: string };
    if (id === undefined || sessionId === undefined) return;
    sample = { cdpSessionId: sessionId, head: Buffer.from(`{"id":${id},`), sentAt: at };
  };
  const received = (cdpSessionId: string, raw: Buffer): void => {
    if (sample === undefined || sample.cdpSessionId !== cdpSessionId) return;
    const { head, sentAt } = sample;
    if (!raw.subarray(0, head.length).equals(head)) return;
    sample = undefined;
    metrics.observe(ROUND_TRIP, (performance.now() - sentAt) / 1_000);
  };
  return {
    ...pipe,
    get isPaused() {
      return pipe.isPaused;
    },
    write(message) {
      sent(message);
      return pipe.write(message);
    },
    claim(id, listener, onTooLong) {
      const listen = (raw: Buffer): void => {
        received(id, raw);
        listener(raw);
      };
      pipe.claim(id, listen, onTooLong);
    },
    release(id) {
      if (sample?.cdpSessionId === id) sample = undefined;
      pipe.release(id);
    },
  };
}
