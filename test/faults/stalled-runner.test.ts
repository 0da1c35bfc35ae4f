/**
 * A stalled runner: its main thread blocks for longer than a lease, blocks forever, or the whole
 * process is stopped and continued. In the places that the table of attacks names.
 */
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { PLACES, type Place, SERVICE_ENV } from '../runner/attacks/lab/attack.ts';
import { attacksIn } from '../runner/attacks/lab/suite.ts';
import { stalled } from '../runner/attacks/table/stalled.ts';
import { ended, type Invocation, invoke, publish } from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { familyOf, stillRunning } from '../support/service/processes.ts';
import { boot, type Stack } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';

const test = suite('faults/stalled-runner');
const PRELOAD = fileURLToPath(new URL('../support/service/stall-preload.ts', import.meta.url));
const LAUNCHER = fileURLToPath(new URL('../../gateway/tabern.js', import.meta.url));
const LEASE_MS = 3_000;
/** Far above any stall of a test. */
const FOR_GOOD_MS = 3_600_000;

type Session = { id: string; status: string; connectUrl: string };

async function openScene(place: Place) {
  await using opened = new AsyncDisposableStack();
  const file = join(opened.use(tempDirectory()).path, 'stall');
  const times = { TABERN_LEASE_MS: String(LEASE_MS), TABERN_LOST_MS: String(LEASE_MS) };
  const lease = { TABERN_TEST_STALL: file, ...times };
  const env = { ...lease, ...SERVICE_ENV[place] };
  const command = [process.execPath, '--import', PRELOAD, LAUNCHER] as const;
  const stack = opened.use(await boot({ command, env }));
  const kept = opened.move();
  return {
    stack,
    /** Resolves when the main thread of the runner is blocked. */
    async stall(ms: number): Promise<void> {
      writeFileSync(file, String(ms));
      process.kill(await stack.runnerPid(), 'SIGUSR2');
      await until(() => !existsSync(file));
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const read = (stack: Stack, { id }: Session) => stack.call<Session>(`/v1/sessions/${id}`);

/** A running session: on a busy machine the response arrives before the browser has started. */
async function create(stack: Stack, json: object = { keepAlive: true }): Promise<Session> {
  const made = await stack.call<Session>('/v1/sessions', { json });
  const found = await until(async () => {
    const session = await read(stack, made);
    return session.status !== 'PENDING' && session;
  });
  assert.is(found.status, 'RUNNING', stack.logs());
  return found;
}

async function connect({ connectUrl }: Session): Promise<WebSocket> {
  const client = new WebSocket(connectUrl);
  await once(client, 'open');
  return client;
}

async function roundTrip(client: WebSocket): Promise<string> {
  client.send('{"id":1,"method":"Browser.getVersion"}');
  const closed = once(client, 'close').then(() => ['closed']);
  const [answer] = await Promise.race([once(client, 'message'), closed]);
  return String(answer);
}

/** Returns while the main thread is blocked. */
const SLOW = {
  'package.json': '{"name":"slow","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('slow', () => new Promise((resolve) => setTimeout(() => resolve('whole'), ${LEASE_MS})));
`,
};

/** Sessions and invocations survive a main thread that blocks for longer than their leases. */
async function outlives(place: Place): Promise<void> {
  await using scene = await openScene(place);
  const { stack, stall } = scene;
  const { slow = '' } = await publish(stack, SLOW);
  const sessions = [await create(stack), await create(stack)] as const;
  const client = await connect(sessions[0]);
  await roundTrip(client);
  const { id } = await invoke(stack, slow);
  const path = `/v1/functions/invocations/${id}`;
  await until(async () => (await stack.call<Invocation>(path)).status !== 'PENDING');
  await stall(3 * LEASE_MS);
  assert.match(await roundTrip(client), /"product"/); // the response arrives after the stall
  for (const session of sessions) assert.is((await read(stack, session)).status, 'RUNNING');
  const { status, results, cause } = await ended(stack, id);
  assert.is(results, 'whole', `${status} ${JSON.stringify(cause)}`);
  // not checked: a lease that core has ended may be the invocation's, renewed while it ended
  assert.not.match(stack.logs(), /work was lost/);
  client.close();
}

/** A main thread that blocks forever ends the process, and another runner starts. */
async function isReplaced(place: Place): Promise<void> {
  await using scene = await openScene(place);
  const { stack, stall } = scene;
  const session = await create(stack);
  const pid = await stack.runnerPid();
  const family = familyOf(pid);
  await stall(FOR_GOOD_MS);
  await until(() => stillRunning(family).length === 0, 180_000);
  assert.match(stack.logs(), /the main thread is blocked/);
  assert.is.not(await stack.runnerPid(), pid);
  await until(async () => (await read(stack, session)).status === 'ERROR');
  await until(() => create(stack).catch(() => undefined));
}

/** A runner that was stopped for long ends its sessions, and what they leave is saved. */
async function endsSessions(place: Place): Promise<void> {
  await using scene = await openScene(place);
  const { stack } = scene;
  const { id } = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
  const settings = { browserSettings: { context: { id, persist: true } } };
  const session = await create(stack, { ...settings, keepAlive: true });
  const client = await connect(session);
  await roundTrip(client);
  const pid = await stack.runnerPid();
  const changed = async () =>
    (await stack.call<{ updatedAt: string }>(`/v1/contexts/${id}`)).updatedAt;
  const before = await changed();
  process.kill(pid, 'SIGSTOP');
  try {
    await until(async () => (await read(stack, session)).status === 'ERROR');
    // core has removed the lease; the runner has not received that yet
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await once(client, 'close'); // the runner has ended the session too
  await until(() => stack.logs().includes('a lease is lost'));
  assert.is(await stack.runnerPid(), pid, 'the runner itself lives on');
  assert.is((await read(stack, session)).status, 'ERROR');
  await until(async () => (await changed()) !== before);
  await until(async () => {
    const log = await stack.call<{ method: string }[]>(`/v1/sessions/${session.id}/logs`);
    return log.some(({ method }) => method === 'Browser.getVersion');
  });
  await create(stack);
}

const TESTS: Readonly<Record<(typeof stalled)[number]['name'], (place: Place) => Promise<void>>> = {
  "the runner's main thread blocks for longer than a lease": outlives,
  "the runner's main thread blocks for ever": isReplaced,
  'the runner is stopped, and continued after its leases have expired': endsSessions,
};
for (const row of stalled) {
  const places = PLACES.filter((place) => attacksIn(stalled, place).includes(row));
  // concurrently: most of the time is waiting
  test(`${row.name}: ${places.join(', ')}`, async () => {
    await Promise.all(places.map(TESTS[row.name]));
  });
}

test.run();
