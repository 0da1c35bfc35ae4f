/**
 * kill -9 of the service and of the runner under load, with four endpoints of which one fails now
 * and then and one cuts connections. No acknowledged event is lost, no end is without its event,
 * each delivery arrived or waits as the schedule says, and what arrived twice is the same.
 * TABERN_FAULT_ROUNDS kills, 10 unless told; TABERN_TEST_SEED repeats the moments.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, publish } from '../support/functions.ts';
import { until } from '../support/poll.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { boot, type Stack } from '../support/stack.ts';
import { tempDirectory } from '../support/temp.ts';
import { brokenPromises } from './history.ts';
import { killsUnder, seeded } from './kills.ts';
import { startLoad } from './load.ts';

const ROUNDS = Number(process.env['TABERN_FAULT_ROUNDS'] ?? 10);
const CLIENTS = 4;
const SHARE_FAILED = 0.1;
const SHARE_CUT = 0.02;
const ENDED_MS = 50_000;
/** Two first waits of the schedule, and room for a machine that is busy. */
const SETTLED_MS = 120_000;
/** In milliseconds: what is due later than this is not waited for. */
const SOON_MS = 30_000;
const TYPES = ['pending', 'running', 'completed', 'failed'].map(
  (name) => `functions.invocations.${name}`,
);

const faults = suite('webhooks');

faults(`${ROUNDS} kills lose no event, and what comes twice is the same`, async () => {
  const random = seeded(Number(process.env['TABERN_TEST_SEED'] ?? Date.now() % 1e6));
  console.log(`TABERN_TEST_SEED=${random.seed}`); // shown when the file is red
  await using opened = new AsyncDisposableStack();
  const receivers = await Promise.all(Array.from({ length: 4 }, () => startReceiver()));
  for (const receiver of receivers) opened.use(receiver);
  const told = answering(receivers);
  await using dir = tempDirectory();
  const webhookCa = join(dir.path, 'ca.pem');
  writeFileSync(webhookCa, receivers.map(({ caPath }) => readFileSync(caPath)).join('\n'));
  await using stack = await boot({ webhookCa });
  const { trivial = '' } = await publish(stack);
  for (const { url } of receivers) {
    await stack.call('/v1/webhooks', { json: { endpoint: `${url}/hook`, eventTypes: TYPES } });
  }
  await using load = startLoad(stack, trivial, CLIENTS);
  await killsUnder(load, stack, { rounds: ROUNDS, random });
  await load.stop();
  for (const id of load.acknowledged) await ended(stack, id, ENDED_MS);
  await until(() => waiting(stack) === 0, SETTLED_MS);
  await stack.kill('SIGTERM');

  const broken = brokenPromises(stack.dataDir, load.acknowledged, { mayWait: true });
  assert.is(broken.length, 0, broken.join('\n'));
  const missing = deliveredBy(stack).filter(({ endpoint, id }) => !told.has(`${endpoint} ${id}`));
  assert.equal(missing, [], 'delivered, and its endpoint knows nothing of it');
  console.log(
    `${ROUNDS} kills, ${load.acknowledged.length} acknowledged, ${summary(receivers, told)}`,
  );
});

faults.run();

/** Deliveries that are under way, or due soon. */
function waiting({ dataDir }: Stack): number {
  return read(dataDir, (db) =>
    db
      .prepare<[number], number>(`
        SELECT COUNT(*) FROM deliveries
        WHERE state = 'in_flight' OR (state = 'pending' AND due < ?)`)
      .pluck()
      .get(Date.now() + SOON_MS),
  );
}

function deliveredBy({ dataDir }: Stack): { endpoint: string; id: string }[] {
  return read(dataDir, (db) =>
    db
      .prepare<[], { endpoint: string; id: string }>(`
        SELECT endpoint, event_id AS id
        FROM deliveries JOIN webhooks ON webhooks.id = deliveries.webhook_id
        WHERE state = 'delivered'`)
      .all(),
  );
}

function read<T>(dataDir: string, look: (db: Database.Database) => T): NonNullable<T> {
  const db = new Database(join(dataDir, 'tabern.db'), { readonly: true });
  try {
    const found = look(db);
    if (found === undefined || found === null) throw new Error('a count has no row');
    return found;
  } finally {
    db.close();
  }
}

/** How often each `endpoint id` was answered 2xx. */
type Told = Map<string, number>;

/** The third fails now and then, the fourth cuts connections; both as hooks do. */
function answering(receivers: readonly Receiver[]): Told {
  const told: Told = new Map();
  const shares = [0, 0, SHARE_FAILED, SHARE_CUT];
  for (const [index, receiver] of receivers.entries()) {
    receiver.otherwise(({ path, headers }) => {
      if (Math.random() < (shares[index] ?? 0)) {
        return index === 2 ? 500 : (response) => void response.destroy();
      }
      const name = `${receiver.url}${path} ${headers['webhook-id']}`;
      told.set(name, (told.get(name) ?? 0) + 1);
      return 204;
    });
  }
  return told;
}

/** Says what came; throws when an event came again with other bytes. */
function summary(receivers: readonly Receiver[], told: Told): string {
  const requests = receivers.flatMap((receiver) => receiver.requests);
  const bodies = new Map<string, Buffer>();
  for (const { headers, body } of requests) {
    const id = String(headers['webhook-id']);
    const first = bodies.get(id) ?? body;
    assert.ok(body.equals(first), `${id} came with other bytes`);
    bodies.set(id, first);
  }
  const twice = [...told.values()].reduce((sum, times) => sum + times - 1, 0);
  const sent = `${requests.length} requests, ${twice} duplicates`;
  return `${bodies.size} events, ${told.size} delivered, ${sent}`;
}
