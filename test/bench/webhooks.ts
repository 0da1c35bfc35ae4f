/**
 * `node test/bench/webhooks.ts [deliveries]`: the rate of durable deliveries (synchronous=FULL) as
 * a share of plain POSTs; the delay that a hung endpoint causes for others; the cost of a claim
 * with half a million deliveries queued. The receiver is a separate process. Read the ratios: the
 * times depend on the machine and its load.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { newId } from '../../core/common/ids.ts';
import { openDatabase } from '../../core/store/sqlite/engine/open.ts';
import { later } from '../../core/store/sqlite/engine/steps.ts';
import type { Tx } from '../../core/store/sqlite/engine/transaction.ts';
import { allOps } from '../../core/store/sqlite/ops.ts';
import { must } from '../../proto/common/must.ts';
import { callerOf } from '../support/core/bare-store.ts';
import { tempDirectory } from '../support/temp.ts';
import { queue, register, startEngine, startReceiverProcess, TYPE } from './support/engine.ts';

const DELIVERIES = Number(process.argv[2] ?? 70_000);
const PROJECTS = 10;
const WEBHOOKS_OF_EACH = 2;
/** Of the raw POSTs: more do not raise the rate. */
const IN_FLIGHT = 64;
const TURNS = 7;
const RAW_MS = 1_000;
const HOUR_MS = 3_600_000;
const HEALTHY = 18;
const HUNG_QUEUE = 5_000;
const EVENTS_PER_S = 150;
const ISOLATION_MS = 10_000;
const BACKLOG = 500_000;
const CLAIMS = 200;
const NS_PER_MS = 1e6;
/** Above any engine's rate: the rate limit of a webhook is not measured. */
const NO_RATE = 1e6;

type Endpoint = { url: string; ca: string };

{
  await using receiver = await startReceiverProcess();
  await throughput(receiver);
  await isolation(receiver);
}
await backlog();

/**
 * Durable deliveries as a share of raw POSTs, in turns: the speed of a shared machine changes from
 * one second to the next, so each turn is between two turns of raw POSTs, and the median counts.
 * One engine makes them all.
 */
async function throughput(receiver: Endpoint): Promise<void> {
  await using dir = tempDirectory();
  const endpoints = Array.from({ length: PROJECTS }, (_, project) =>
    Array.from({ length: WEBHOOKS_OF_EACH }, (_, n) => `${receiver.url}/${project}/${n}`),
  );
  const made = await register(dir.path, endpoints);
  const each = Math.ceil(DELIVERIES / TURNS / made.length);
  const startAt = Date.now();
  for (let turn = 1; turn <= TURNS; turn += 1) {
    for (const projectId of new Set(made.map((one) => one.projectId))) {
      queue(dir.path, projectId, each, startAt + turn * HOUR_MS);
    }
  }
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const options = { ca: receiver.ca, ratePerS: NO_RATE, now };
  await using engine = await startEngine(dir.path, options);
  const count = each * made.length;
  const raws = [await raw(receiver)];
  const rates: number[] = [];
  const cpuUs: number[] = [];
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const cpu = process.cpuUsage();
    const ended = engine.ended(count);
    aheadMs = turn * HOUR_MS;
    await engine.wake(must(made[0], 'webhook'));
    rates.push((1_000 * count) / (await ended));
    const { user, system } = process.cpuUsage(cpu);
    cpuUs.push((user + system) / count);
    raws.push(await raw(receiver));
  }
  const shares = rates.map(
    (rate, turn) => (200 * rate) / (must(raws[turn], 'raw') + must(raws[turn + 1], 'raw')),
  );
  const { claims, reports } = engine.calls;
  const total = count * TURNS;
  console.log(`raw undici POST, https keep-alive: ${list(raws)}/s`);
  console.log(`durable deliveries, FULL, ${count} to 20 webhooks each turn: ${list(rates)}/s`);
  console.log(`  of raw: ${list(shares)} %, median ${median(shares).toFixed(0)} % (want 25 %)`);
  console.log(
    `  ${(total / (claims + reports)).toFixed(1)} per call to core, ` +
      `${list(cpuUs)} us of CPU each`,
  );
}

function list(values: readonly number[]): string {
  return values.map((value) => value.toFixed(0)).join(', ');
}

function median(values: readonly number[]): number {
  return must(values.toSorted((one, other) => one - other)[values.length >> 1], 'median');
}

/** POSTs a second of a delivery's request, without storing anything. */
async function raw({ url, ca }: Endpoint): Promise<number> {
  const pool = new Pool(url, { connections: IN_FLIGHT, connect: { ca } });
  const body = Buffer.alloc(1_300, 'x');
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'tabern-webhooks/1',
    'x-svc-webhook-attempt': '1',
    'webhook-id': newId(),
    'webhook-timestamp': '1790000000',
    'webhook-signature': `v1,${'x'.repeat(44)}`,
  };
  const startedAt = performance.now();
  let count = 0;
  const client = async () => {
    while (performance.now() - startedAt < RAW_MS) {
      const answer = await pool.request({ method: 'POST', path: '/raw', headers, body });
      await answer.body.dump();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  const rate = (1_000 * count) / (performance.now() - startedAt);
  await pool.close();
  return rate;
}

/** Commit -> request at healthy endpoints, beside one that hangs on a long queue. */
async function isolation(receiver: Endpoint): Promise<void> {
  await using dir = tempDirectory();
  const healthy = Array.from({ length: HEALTHY }, (_, n) => `${receiver.url}/healthy/${n}`);
  const [hung, ...well] = await register(dir.path, [[`${receiver.url}/hung`], healthy]);
  queue(dir.path, must(hung, 'hung').projectId, HUNG_QUEUE);
  await using engine = await startEngine(dir.path, { ca: receiver.ca, ratePerS: 50 });
  const committed = new Map<string, number>();
  const emit = async (index: number) => {
    const { projectId, webhookId } = must(well[index % HEALTHY], 'webhook');
    const test = await engine.webhooks.sendTest({ id: webhookId }, callerOf(projectId));
    const id = must(test.delivery, 'delivery').id;
    committed.set(id, Number(process.hrtime.bigint()) / NS_PER_MS);
  };
  for (let n = 0; n < HEALTHY; n++) await emit(n); // opens the connections
  await sleep(1_000);
  await arrivals(receiver);
  committed.clear();
  const startedAt = performance.now();
  const sending: Promise<void>[] = [];
  for (let n = 0; performance.now() - startedAt < ISOLATION_MS; n++) {
    await sleep(Math.max(0, startedAt + (1_000 * n) / EVENTS_PER_S - performance.now()));
    sending.push(emit(n));
  }
  await Promise.all(sending);
  await sleep(1_000);
  const arrived = await arrivals(receiver);
  const waits = [...committed].flatMap(([id, at]) => {
    const came = arrived[id];
    return came === undefined ? [] : [Math.max(0, came - at)];
  });
  const lost = committed.size - waits.length;
  console.log(
    `commit -> request at ${HEALTHY} healthy endpoints, ${EVENTS_PER_S}/s, one hung with ` +
      `${HUNG_QUEUE} queued: ${spread(waits)} (want p99 50 ms); ${waits.length} sent, ${lost} late`,
  );
}

async function arrivals({ url, ca }: Endpoint): Promise<Record<string, number>> {
  const pool = new Pool(url, { connect: { ca } });
  const answer = await pool.request({ method: 'GET', path: '/arrivals' });
  const found = (await answer.body.json()) as Record<string, number>;
  await pool.close();
  return found;
}

/** A claim of eight, and one that finds its webhook at its cap, in a database with a backlog. */
async function backlog(): Promise<void> {
  await using dir = tempDirectory();
  const [one] = await register(dir.path, [['https://127.0.0.1:9/']]);
  const { projectId, webhookId } = must(one, 'webhook');
  const open = openDatabase({ dir: dir.path, durability: 'full' });
  const { db } = open;
  const at = Date.now();
  const fill = db.prepare(`
    WITH RECURSIVE numbers (n) AS (
       SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${BACKLOG})
    INSERT INTO events (id, project_id, type, resource_id, body, created_at)
    SELECT printf('event-%08d', n), @projectId, '${TYPE}', printf('resource-%08d', n),
      CAST('{"id":"x"}' AS BLOB), @at FROM numbers`);
  fill.run({ projectId, at });
  db.prepare(`
    INSERT INTO deliveries (event_id, webhook_id, state, due, created_at)
    SELECT id, ?, 'pending', ?, ? FROM events`).run(webhookId, at, at);
  db.prepare('UPDATE webhooks SET next_due = ? WHERE id = ?').run(at, webhookId);
  const tx: Tx = { db, wake: () => {}, crashPoint: () => {}, later };
  const ops = allOps(tx);
  const sender = { senderId: 'bench', instanceId: newId() };
  const wanted = { ...sender, max: 64, perProjectMax: 32, ratePerS: NO_RATE, jitter: 1 };
  const [taken, capped]: [number[], number[]] = [[], []];
  const claim = db.transaction(() =>
    timed(taken, () =>
      ops.claimDeliveries({ ...wanted, at, signedAtS: 0, leaseUntil: at + 45_000 }),
    ),
  );
  for (let n = 0; n < CLAIMS; n++) {
    const { claims } = claim.immediate();
    timed(capped, () =>
      ops.claimDeliveries({ ...wanted, at, signedAtS: 0, leaseUntil: at + 45_000 }),
    );
    const release = db.prepare(`UPDATE deliveries SET state = 'delivered' WHERE id = ?`);
    for (const { deliveryId } of claims) release.run(deliveryId);
  }
  open.close();
  console.log(`claim with ${BACKLOG} queued: ${spread(taken)} (want 1 ms)`);
  console.log(`  with the webhook at its cap: ${spread(capped)}`);
}

function timed<T>(into: number[], act: () => T): T {
  const startedAt = performance.now();
  const value = act();
  into.push(performance.now() - startedAt);
  return value;
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0).toFixed(2);
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} ms`;
}
