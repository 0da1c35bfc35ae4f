/**
 * kill -9 of the service and of the runner, in turn, at random moments under load (reliability.md
 * F1, F3). No acknowledged invocation is lost, each ends once with its event and its delivery, and
 * nothing is left behind. The seed of the moments is printed with a failure: TABERN_TEST_SEED.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, publish } from '../support/functions.ts';
import { until } from '../support/poll.ts';
import { familyOf, stillRunning } from '../support/processes.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { boot, type Stack } from '../support/stack.ts';
import { brokenPromises } from './history.ts';
import { type Load, startLoad } from './load.ts';

const ROUNDS = 20;
const CLIENTS = 4;
/**
 * A kill comes this long after the service or the runner is ready: in every phase of an invocation.
 */
const KILL_AFTER_MS = { min: 60, max: 1_200 };
/** What a killed process leaves must be gone within this. Source: reliability.md F3. */
const GONE_MS = 15_000;
/**
 * An invocation whose runner vanished is FAILED this long after its lease ended. Source: issue 2.
 */
const ENDED_MS = 15_000 + 10_000;
const DELIVERED_MS = 60_000;
const ENDS = ['functions.invocations.completed', 'functions.invocations.failed'];

const kill = suite('kill');

kill('twenty kills lose nothing that was acknowledged, and leave nothing behind', async () => {
  const random = seeded(Number(process.env['TABERN_TEST_SEED'] ?? Date.now() % 1e6));
  console.log(`TABERN_TEST_SEED=${random.seed}`); // shown when the file is red
  await using receiver = await startReceiver();
  await using stack = await boot({ webhookCa: receiver.caPath });
  const { trivial = '' } = await publish(stack);
  await stack.call('/v1/webhooks', {
    json: { endpoint: `${receiver.url}/hook`, eventTypes: ENDS },
  });
  await using load = startLoad(stack, trivial, CLIENTS);
  for (let round = 0; round < ROUNDS; round++) {
    const delay = KILL_AFTER_MS.min + random() * (KILL_AFTER_MS.max - KILL_AFTER_MS.min);
    const before = load.acknowledged.length;
    await until(() => load.acknowledged.length > before, GONE_MS).catch((cause) => {
      throw new Error(`nothing is accepted any more: ${[...load.failures]}`, { cause });
    });
    await new Promise((resolve) => setTimeout(resolve, delay));
    await (round % 2 === 0 ? killService(stack) : killRunner(stack));
  }
  await load.stop();
  await settled(stack, load, receiver);
  await stack.kill('SIGTERM');
  const broken = brokenPromises(stack.dataDir, load.acknowledged);
  assert.is(broken.length, 0, broken.join('\n'));
  assert.ok(load.acknowledged.length >= ROUNDS);
});

kill.run();

/** Everything goes with it, before it comes back: nobody else would end what it left. */
async function killService(stack: Stack): Promise<void> {
  await stack.kill('SIGKILL');
  const isGone = () => stack.leftovers().every((line) => !line.startsWith('process'));
  await until(isGone, GONE_MS).catch(() => {
    throw new Error(`left by a killed service:\n${stack.leftovers().join('\n')}`);
  });
  await stack.restart();
}

/** Its jails and Chromes go with it, and the service starts another. */
async function killRunner(stack: Stack): Promise<void> {
  const pid = await stack.runnerPid();
  const family = familyOf(pid);
  process.kill(pid, 'SIGKILL');
  await until(() => stillRunning(family).length === 0, GONE_MS).catch(() => {
    const left = stillRunning(family).map((one) => `${one.pid}: ${one.command}`);
    throw new Error(`left by a killed runner:\n${left.join('\n')}`);
  });
  await stack.runnerPid();
}

/** Every acknowledged invocation is over, and the endpoint knows of each. */
async function settled(stack: Stack, load: Load, receiver: Receiver): Promise<void> {
  for (const id of load.acknowledged) await ended(stack, id, ENDED_MS);
  const told = () => new Set(receiver.requests.map(({ body }) => JSON.parse(`${body}`).resourceId));
  await until(() => load.acknowledged.every((id) => told().has(id)), DELIVERED_MS);
}

/** Numbers in [0, 1) that the seed repeats (mulberry32). */
function seeded(seed: number): { (): number; seed: number } {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return Object.assign(next, { seed });
}
