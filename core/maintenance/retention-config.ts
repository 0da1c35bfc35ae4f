/** How long things are kept, and what throws them away: every cleaner of core, once a minute. */
import { type Env, integer } from '../../proto/common/env.ts';
import type { Parts } from '../services.ts';
import { fileCleaner } from './file-retention.ts';
import { recordingCleaner } from './recording-retention.ts';
import { type Cleaner, eventCleaner, startJanitor } from './retention.ts';
import { sessionCleaner, sessionLogCleaner } from './session-retention.ts';
import { idempotencyCleaner, workCleaner } from './work-retention.ts';

const DAY_MS = 86_400_000;
/** Ten years: whoever wants more keeps a backup. Ours. */
const DAYS_MAX = 3_650;

/** All in days, each of them 1 to 3650. */
export type KeptDays = {
  /** TABERN_DOWNLOAD_DAYS, 30: what pages downloaded. */
  downloadDays: number;
  /** TABERN_SESSION_LOG_DAYS, 30: protocol logs. */
  sessionLogDays: number;
  /** TABERN_RECORDING_DAYS, 31: recordings, from their session's end. */
  recordingDays: number;
  /** TABERN_EVENT_DAYS, 30: events, with their deliveries and attempts. */
  eventDays: number;
  /** TABERN_LOG_DAYS, 30: what invocations and builds printed. */
  logDays: number;
  /** TABERN_INVOCATION_DAYS, 90: invocations that have ended. */
  invocationDays: number;
  /** TABERN_BUILD_DAYS, 90: builds, and versions, that nobody runs any more. */
  buildDays: number;
  /** TABERN_SESSION_DAYS, 90: sessions that have ended, once nothing else of them is kept. */
  sessionDays: number;
};

export function keptDays(env: Env): KeptDays {
  const days = (name: string, value: number) =>
    integer(env, name, { default: value, min: 1, max: DAYS_MAX });
  return {
    downloadDays: days('TABERN_DOWNLOAD_DAYS', 30),
    sessionLogDays: days('TABERN_SESSION_LOG_DAYS', 30),
    recordingDays: days('TABERN_RECORDING_DAYS', 31),
    eventDays: days('TABERN_EVENT_DAYS', 30),
    logDays: days('TABERN_LOG_DAYS', 30),
    invocationDays: days('TABERN_INVOCATION_DAYS', 90),
    buildDays: days('TABERN_BUILD_DAYS', 90),
    sessionDays: days('TABERN_SESSION_DAYS', 90),
  };
}

/** Cleans until it is disposed of. */
export function startCleaning(
  kept: KeptDays,
  parts: Pick<Parts, 'store' | 'files' | 'log' | 'now' | 'isHeld'>,
): AsyncDisposable {
  return startJanitor({ ...parts, cleaners: cleanersOf(kept, parts) });
}

/** All that throws away what is old; what is too much is of the loop. */
export function cleanersOf(
  kept: KeptDays,
  parts: Pick<Parts, 'store' | 'files' | 'log' | 'now'>,
): Cleaner[] {
  return [
    eventCleaner({ ...parts, keptMs: kept.eventDays * DAY_MS }),
    fileCleaner({ ...parts, downloadsKeptMs: kept.downloadDays * DAY_MS }),
    sessionLogCleaner({ ...parts, keptMs: kept.sessionLogDays * DAY_MS }),
    recordingCleaner({ ...parts, keptMs: kept.recordingDays * DAY_MS }),
    idempotencyCleaner(parts),
    workCleaner({
      ...parts,
      logsKeptMs: kept.logDays * DAY_MS,
      invocationsKeptMs: kept.invocationDays * DAY_MS,
      buildsKeptMs: kept.buildDays * DAY_MS,
    }),
    // last: what the others keep of a session keeps it
    sessionCleaner({ ...parts, keptMs: kept.sessionDays * DAY_MS }),
  ];
}
