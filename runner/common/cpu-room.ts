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

/** One look. The signal ends it early. A kernel without that information always has room. */
export async function hasCpuRoom(signal: AbortSignal, read = pressureText): Promise<boolean> {
  const [waited, at] = [waitedMs(read()), performance.now()];
  await pause(LOOK_MS, signal);
  return waitedMs(read()) - waited <= WAITED_MAX * (performance.now() - at);
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
