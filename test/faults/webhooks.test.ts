/**
 * kill -9 of the service and of the runner under load, with four endpoints of which one fails now
 * and then and one cuts connections; and of core, the gateway and the runner, each by itself. No
 * acknowledged event is lost, no end is without its event, each delivery arrived or waits as the
 * schedule says, and what arrived twice is the same.
 * TABERN_FAULT_ROUNDS kills, 10 unless told; TABERN_TEST_SEED repeats the moments.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, publish } from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { boot } from '../support/service/stack.ts';
import { type Apart, ROLES, startApart } from './apart.ts';
import { type Endpoints, startEndpoints, waiting } from './endpoints.ts';
import { brokenPromises } from './history.ts';
import { atMoments, killsUnder, type Seeded, seeded } from './kills.ts';
import { type Load, startLoad } from './load.ts';

const ROUNDS = Number(process.env['TABERN_FAULT_ROUNDS'] ?? 10);
const CLIENTS = 4;
const ENDED_MS = 50_000;
/** Two first waits of the schedule, and room for a machine that is busy. */
const SETTLED_MS = 120_000;

const faults = suite('webhooks');

faults(`kill-core: ${ROUNDS} kills lose no event, and what comes twice is the same`, async () => {
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

faults(`kill-core: core, gateway and runner apart: ${ROUNDS} kills lose no event`, async () => {
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

/** What was accepted has ended, and what can be delivered soon is. */
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
