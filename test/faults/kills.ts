/** kill -9 of the service and of the runner, in turn, at random moments of a seed. */
import { until } from '../support/poll.ts';
import { familyOf, stillRunning } from '../support/service/processes.ts';
import type { Stack } from '../support/service/stack.ts';
import type { Load } from './load.ts';

/** The time from a ready service or runner to the kill: in every phase of an invocation. */
const KILL_AFTER_MS = { min: 60, max: 1_200 };
/** Descendants of a killed process end within 15 s; here three times that. */
const GONE_MS = 45_000;

export type Seeded = { (): number; seed: number };
type Kills = { rounds: number; random: () => number };

/** The service and the runner, in turn. */
export function killsUnder(load: Load, stack: Stack, kills: Kills): Promise<void> {
  return atMoments(load, kills, (round) =>
    round % 2 === 0 ? killService(stack) : killRunner(stack),
  );
}

/** Kills only after an invocation was acknowledged since the last kill. */
export async function atMoments(
  load: Load,
  { rounds, random }: Kills,
  kill: (round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const delay = KILL_AFTER_MS.min + random() * (KILL_AFTER_MS.max - KILL_AFTER_MS.min);
    const before = load.acknowledged.length;
    await until(() => load.acknowledged.length > before, GONE_MS).catch((cause) => {
      throw new Error(`nothing is accepted any more: ${[...load.failures]}`, { cause });
    });
    await new Promise((resolve) => setTimeout(resolve, delay));
    await kill(round);
  }
}

/** Kills all its descendants before the new start: no other process would end them. */
async function killService(stack: Stack): Promise<void> {
  await stack.kill('SIGKILL');
  const isGone = () => stack.leftovers().every((line) => !line.startsWith('process'));
  await until(isGone, GONE_MS).catch(() => {
    throw new Error(`left by a killed service:\n${stack.leftovers().join('\n')}`);
  });
  await stack.restart();
}

/** Its jails and Chromes are killed too, and the service starts another runner. */
async function killRunner(stack: Stack): Promise<void> {
  await killFamily(await stack.runnerPid());
  await stack.runnerPid();
}

/** kill -9 of a runner. All its descendants have ended when this returns. */
export async function killFamily(pid: number): Promise<void> {
  const family = familyOf(pid);
  process.kill(pid, 'SIGKILL');
  await until(() => stillRunning(family).length === 0, GONE_MS).catch(() => {
    const left = stillRunning(family).map((one) => `${one.pid}: ${one.command}`);
    throw new Error(`left by a killed runner:\n${left.join('\n')}`);
  });
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): Seeded {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return Object.assign(next, { seed });
}
