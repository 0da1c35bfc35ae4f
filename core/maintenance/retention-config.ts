/** How long things are kept, and what throws them away: every cleaner of core, once a minute. */
import type { SettingsOf } from '../../proto/common/settings/read.ts';
import type { Parts } from '../services.ts';
import { fileCleaner } from './file-retention.ts';
import { recordingCleaner } from './recording-retention.ts';
import { type Cleaner, eventCleaner, startJanitor } from './retention.ts';
import { sessionCleaner, sessionLogCleaner } from './session-retention.ts';
import { idempotencyCleaner, workCleaner } from './work-retention.ts';

const DAY_MS = 86_400_000;

/** In days: how long each kind is kept. */
export type KeptDays = Pick<Settings, Extract<keyof Settings, `${string}Days`>>;
type Settings = SettingsOf<'core'>;

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
