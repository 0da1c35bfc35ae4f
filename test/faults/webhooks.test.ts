/**
 * kill -9 of the service and of the runner under load, with four endpoints of which one fails at
 * times and one cuts connections; and of core, the gateway and the runner, each alone. No
 * acknowledged event is lost, no end is without its event, each delivery arrived or waits for its
 * scheduled attempt, and repeated deliveries are identical. TABERN_TEST_SEED repeats the moments.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, publish } from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { boot } from '../support/service/stack.ts';
import { sized } from '../support/whole.ts';
import { type Apart, ROLES, startApart } from './apart.ts';
import { type Endpoints, startEndpoints, waiting } from './endpoints.ts';
import { brokenPromises } from './history.ts';
import { atMoments, killsUnder, type Seeded, seeded } from './kills.ts';
import { type Load, startLoad } from './load.ts';

const ROUNDS = sized(2, 10);
const CLIENTS = 4;
/** As long as several restarts of the service on a busy machine. */
const ENDED_MS = 120_000;
/** The first two waits of the schedule, with room for a busy machine. */
const SETTLED_MS = 120_000;

const faults = suite('webhooks');

faults(`kill-core: ${ROUNDS} kills lose no event; repeats are identical`, async () => {
  const random = begin();
  await using endpoints = await startEndpoints();
  await using stack = await boot({ webhookCa: endpoints.webhookCa });
  const { trivial = '' } = await publish(stack);
  await endpoints.register(stack);
  await using load = startLoad(stack, trivial, CLIENTS);
  await killsUnder(load, stack, { rounds: ROUNDS, random });
  await settled(stack, load);
  await stack.kill('SIGTERM');
  judge(stack.dataDir, load, endpoints);
});

faults(`kill-core: ${ROUNDS} kills of separate roles lose no event`, async () => {
  const random = begin();
  await using endpoints = await startEndpoints();
  await using stack = await startApart({ TABERN_WEBHOOK_CA: endpoints.webhookCa });
  const { trivial = '' } = await publish(stack);
  await endpoints.register(stack);
  await using load = startLoad(stack, trivial, CLIENTS);
  await atMoments(load, { rounds: ROUNDS, random }, (round) =>
    stack.kill(ROLES[round % ROLES.length] ?? 'core'),
  );
  await settled(stack, load);
  await stack.stop();
  judge(stack.dataDir, load, endpoints);
});

faults.run();

/** The moments of the kills. */
function begin(): Seeded {
  const random = seeded(Number(process.env['TABERN_TEST_SEED'] ?? Date.now() % 1e6));
  console.log(`TABERN_TEST_SEED=${random.seed}`); // shown when the file is red
  return random;
}

/** Waits until accepted invocations have ended and due deliveries were sent. */
async function settled(stack: Pick<Apart, 'call' | 'dataDir'>, load: Load): Promise<void> {
  await load.stop();
  for (const id of load.acknowledged) await ended(stack, id, ENDED_MS);
  await until(() => waiting(stack.dataDir) === 0, SETTLED_MS);
}

function judge(dataDir: string, load: Load, endpoints: Endpoints): void {
  const broken = brokenPromises(dataDir, load.acknowledged, { mayWait: true });
  assert.is(broken.length, 0, broken.join('\n'));
  const came = endpoints.judged(dataDir);
  console.log(`${ROUNDS} kills, ${load.acknowledged.length} acknowledged, ${came}`);
}
