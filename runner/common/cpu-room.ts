/**
 * Whether the processors have room: the kernel's pressure stall information says for how long tasks
 * waited for one. https://docs.kernel.org/accounting/psi.html
 */
import { readFileSync } from 'node:fs';
import { pause } from '../../proto/common/pause.ts';

const PRESSURE_FILE = '/proc/pressure/cpu';
const LOOK_MS = 250;
/** Ours: the part of a look in which some task may wait, and there still is room. */
const WAITED_MAX = 0.25;
/** Ours: the part of a look from which on work that can wait, waits. */
const WAITED_MUCH = 0.5;
/** Ours: of the time in which work does not yield. It yields for a tenth of all time at most. */
const REGAINED = 0.1;

/** One look. The signal ends it early. A kernel without that information always has room. */
export async function hasCpuRoom(signal: AbortSignal, read = pressureText): Promise<boolean> {
  const [waited, at] = [waitedMs(read()), performance.now()];
  await pause(LOOK_MS, signal);
  return waitedMs(read()) - waited <= WAITED_MAX * (performance.now() - at);
}

/**
 * Whether the processors are overloaded, from looks between its calls, so that it may be asked
 * often. A kernel without that information never is.
 */
export function watchOverload(read = pressureText): () => boolean {
  let from = { waited: waitedMs(read()), at: performance.now() };
  let isOverloaded = false;
  return () => {
    const elapsed = performance.now() - from.at;
    if (elapsed < LOOK_MS) return isOverloaded;
    const waited = waitedMs(read());
    isOverloaded = waited - from.waited > WAITED_MUCH * elapsed;
    from = { waited, at: performance.now() };
    return isOverloaded;
  };
}

/**
 * Returns a function that waits while the processors are overloaded, for at most `maxMs`. What it
 * waits is regained slowly: work that comes again and again is late once, not each time.
 */
export function yieldWhile(
  isOverloaded: () => boolean,
  maxMs: number,
): (signal: AbortSignal) => Promise<void> {
  let [leftMs, at] = [maxMs, performance.now()];
  /** The time since the last call. */
  const elapsed = (): number => {
    const before = at;
    at = performance.now();
    return at - before;
  };
  return async (signal) => {
    leftMs = Math.min(maxMs, leftMs + REGAINED * elapsed());
    while (leftMs > 0 && !signal.aborted && isOverloaded()) {
      await pause(Math.min(LOOK_MS, leftMs), signal);
      leftMs -= elapsed();
    }
  };
}

/** For how long some task has waited since the start of the machine. */
function waitedMs(pressure: string): number {
  const [, micros = '0'] = /^some .*\btotal=(\d+)/m.exec(pressure) ?? [];
  return Number(micros) / 1_000;
}

function pressureText(): string {
  try {
    return readFileSync(PRESSURE_FILE, 'latin1');
  } catch {
    return ''; // no such information
  }
}
