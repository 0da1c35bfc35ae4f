/**
 * The time of the service, from the Date header of its answers: ages are correct also where the
 * clock of this machine is wrong.
 */
import { signal } from '@preact/signals';

/** Whether times are shown in UTC. */
export const isUtc = signal(false);
/** Unix milliseconds of the service; changes once a second. */
export const now = signal(0);

let atZero: number | undefined; // what the service's clock showed when performance.now() was 0

/** Takes the Date header of an answer. Its unit is the second, so the clock is set once. */
export function setClock(date: string | null): void {
  const at = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(at)) return;
  const zero = at - performance.now();
  const isWrong = atZero === undefined || Math.abs(zero - atZero) > 2_000;
  if (isWrong) atZero = zero;
  tick();
}

/** Moves `now` forward. */
export function tick(): void {
  if (atZero !== undefined) now.value = Math.round(atZero + performance.now());
}
