/** Sessions on a machine whose clock is set while they run, and while core is down. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { until } from '../support/poll.ts';
import { processesNaming, signalAll } from '../support/service/processes.ts';
import { tempDirectory } from '../support/temp.ts';
import { sized } from '../support/whole.ts';
import { type Apart, ROLES, type Role, startApart } from './apart.ts';

const test = suite('faults/clock-jump');
const PRELOAD = fileURLToPath(new URL('../support/service/clock-preload.ts', import.meta.url));
const BIN = fileURLToPath(new URL('../../gateway/bin.ts', import.meta.url));
const TYPE = 'functions.invocations.completed';
const HOUR_MS = 3_600_000;
/**
 * The product's own: a restart of core takes less than twice this time, also on a busy machine.
 * With 8 s, one was too slow at a load of 30.
 */
const LEASE_MS = 15_000;
/**
 * A lease is renewed at a third of its time, and swept each second. So many renewals take longer
 * than a lease that is not renewed.
 */
const RENEWALS = 4;
const SETTLE_MS = 2_000;
/** Far more than the time needed on a busy machine. */
const FOLLOW_LIMIT_MS = 60_000;
const DAY_MS = 24 * HOUR_MS;

type Webhook = { id: string; updatedAt: string };
type Session = { id: string; status: string; connectUrl: string };

async function openScene(offMs = 0) {
  await using opened = new AsyncDisposableStack();
  const file = join(opened.use(tempDirectory()).path, 'clock');
  writeFileSync(file, String(offMs));
  const command = [process.execPath, '--import', PRELOAD, BIN] as const;
  const env = {
    TABERN_TEST_CLOCK: file,
    TABERN_LEASE_MS: String(LEASE_MS),
    TABERN_CLOCK_SETTLE_MS: String(SETTLE_MS),
  };
  const commands = { core: command, gateway: command, runner: command };
  const apart = opened.use(await startApart(env, commands));
  const session = await apart.call<Session>('/v1/sessions', {
    json: { keepAlive: true, timeout: HOUR_MS / 2_000 },
  });
  const read = () => apart.call<Session>(`/v1/sessions/${session.id}`);
  await until(async () => (await read()).status === 'RUNNING', FOLLOW_LIMIT_MS);
  const client = new WebSocket(session.connectUrl);
  opened.defer(() => client.terminate());
  await once(client, 'open');
  const webhook = await apart.call<Webhook>('/v1/webhooks', {
    json: { endpoint: 'https://127.0.0.1/', eventTypes: [TYPE] },
  });
  const kept = opened.move();
  return {
    apart,
    /** Sets the clock of the running processes of these roles and of all later processes. */
    setClock(offMs: number, roles: readonly Role[] = ROLES): void {
      writeFileSync(file, String(offMs));
      const isOf = new RegExp(` (${roles.join('|')})$`);
      const running = processesNaming(apart.dataDir).filter(({ command }) => isOf.test(command));
      assert.is(running.length, roles.length);
      signalAll(running, 'SIGUSR2');
    },
    /** Core writes the time of an update from this clock. */
    async checkFollows(offMs: number): Promise<void> {
      const change = {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ eventTypes: [TYPE] }),
      };
      const isFollowed = async (): Promise<boolean> => {
        const { updatedAt } = await apart.call<Webhook>(`/v1/webhooks/${webhook.id}`, change);
        return Math.abs(Date.parse(updatedAt) - Date.now() - offMs) < 60_000;
      };
      await until(isFollowed, FOLLOW_LIMIT_MS);
    },
    /** Checks that the service and the client still have the session. */
    async checkSession(): Promise<void> {
      await renewals(apart, session.id);
      const { status } = await read();
      assert.is(status, 'RUNNING', apart.logs().slice(-4_000));
      client.send('{"id":1,"method":"Browser.getVersion"}');
      const closed = once(client, 'close').then(() => ['closed']);
      const [answer] = await Promise.race([once(client, 'message'), closed]);
      assert.match(String(answer), /"product"/);
      assert.not.match(apart.logs(), /lease is lost|work was lost/);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Waits for renewals of the session's lease after this moment; each sets when it expires. */
async function renewals({ dataDir }: Apart, id: string): Promise<void> {
  using opened = new DisposableStack();
  const database = new Database(join(dataDir, 'tabern.db'), { readonly: true });
  opened.defer(() => database.close());
  const lease = database.prepare('SELECT lease_until FROM jobs WHERE id = ?').pluck();
  let seen = lease.get(id);
  let changes = 0;
  const isRenewed = (): boolean => {
    const now = lease.get(id);
    if (now !== seen) changes += 1;
    seen = now;
    return changes >= RENEWALS || now === undefined; // the session has ended
  };
  await until(isRenewed, FOLLOW_LIMIT_MS);
}

async function isSetBy(hours: number): Promise<void> {
  await using scene = await openScene();
  scene.setClock(hours * HOUR_MS);
  await scene.checkSession();
}

async function isSetWhileCoreIsDown(hours: number): Promise<void> {
  await using scene = await openScene();
  scene.setClock(hours * HOUR_MS, ['runner', 'gateway']);
  await scene.apart.kill('core'); // SIGKILL and a new start
  await scene.checkSession();
}

async function wasAheadBy(aheadMs: number): Promise<void> {
  await using scene = await openScene(aheadMs);
  await scene.checkFollows(aheadMs);
  scene.setClock(0);
  await scene.checkFollows(0);
  await scene.checkSession();
  await scene.apart.kill('core'); // stored times are no longer ahead
  await scene.checkFollows(0);
  await scene.checkSession();
  scene.setClock(aheadMs);
  await scene.checkFollows(aheadMs);
  await scene.checkSession();
}

// the scenes of a test concurrently: most of the time is waiting
test('setting the clock by an hour, forward or back, ends no session', async () => {
  await Promise.all([1, -1].map(isSetBy));
});

test('setting the clock by an hour while core is down ends no session', async () => {
  await Promise.all(sized([-1], [1, -1]).map(isSetWhileCoreIsDown));
});

test('core follows a clock that was far ahead, back and forward', async () => {
  await Promise.all(sized([30 * DAY_MS], [2 * HOUR_MS, 30 * DAY_MS]).map(wasAheadBy));
});

test.run();
