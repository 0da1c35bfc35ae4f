/** The newest warnings and errors of core's log, in memory, for the operator's page of events. */
import type { Log } from '../../proto/common/log.ts';

/** Ours: what a person reads; the log has all. */
const NOTICES_MAX = 200;
/** Messages are constants of the code and short. */
const MESSAGE_MAX_CHARS = 200;

/** `number` counts from 1. */
export type Notice = { number: number; at: number; level: 'warn' | 'error'; message: string };
export type Notices = { log: Log; list(): readonly Notice[] };

/**
 * Returns a log that also keeps its warnings and errors, newest first in `list`. Only messages are
 * kept, not their facts.
 */
export function openNotices(log: Log, now: () => number): Notices {
  const kept: Notice[] = [];
  let number = 0;
  const note = (level: Notice['level'], given: readonly unknown[]): void => {
    const message = given.find((one) => typeof one === 'string') ?? '';
    number += 1;
    kept.unshift({ number, at: now(), level, message: message.slice(0, MESSAGE_MAX_CHARS) });
    kept.length = Math.min(kept.length, NOTICES_MAX);
  };
  const noting = (level: Notice['level']) =>
    ((...given: Parameters<Log['warn']>) => {
      note(level, given);
      log[level](...given);
    }) as Log['warn'];
  const own = Object.create(log, {
    warn: { value: noting('warn') },
    error: { value: noting('error') },
  }) as Log;
  return { log: own, list: () => kept };
}
