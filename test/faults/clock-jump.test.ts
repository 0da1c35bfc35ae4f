/** Sessions on a machine whose clock is set while they run, and while core is away. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { processesNaming, signalAll } from '../support/processes.ts';
import { tempDirectory } from '../support/temp.ts';
import { ROLES, type Role, startApart } from './apart.ts';

const test = suite('faults/clock-jump');
const PRELOAD = fileURLToPath(new URL('../support/clock-preload.ts', import.meta.url));
const BIN = fileURLToPath(new URL('../../gateway/bin.ts', import.meta.url));
const HOUR_MS = 3_600_000;
/** A restart of core takes less than twice of it, also on a busy machine. */
const LEASE_MS = 8_000;
/** Several renewals and sweeps, and longer than a lease that nobody renews. */
const WHILE_MS = LEASE_MS + 4_000;

type Session = { id: string; status: string; connectUrl: string };

async function openScene() {
  await using opened = new AsyncDisposableStack();
  const file = join(opened.use(tempDirectory()).path, 'clock');
  writeFileSync(file, '0');
  const command = [process.execPath, '--import', PRELOAD, BIN] as const;
  const env = { TABERN_TEST_CLOCK: file, TABERN_LEASE_MS: String(LEASE_MS) };
  const commands = { core: command, gateway: command, runner: command };
  const apart = opened.use(await startApart(env, commands));
  const session = await apart.call<Session>('/v1/sessions', {
    json: { keepAlive: true, timeout: HOUR_MS / 2_000 },
  });
  assert.is(session.status, 'RUNNING');
  const client = new WebSocket(session.connectUrl);
  opened.defer(() => client.terminate());
  await once(client, 'open');
  const kept = opened.move();
  return {
    apart,
    /** Sets the clock, of processes that run in these roles and of all that start from now on. */
    setClock(offMs: number, roles: readonly Role[] = ROLES): void {
      writeFileSync(file, String(offMs));
      const isOf = new RegExp(` (${roles.join('|')})$`);
      const running = processesNaming(apart.dataDir).filter(({ command }) => isOf.test(command));
      assert.is(running.length, roles.length);
      signalAll(running, 'SIGUSR2');
    },
    /** The session is there, for the service and for its client. */
    async checkSession(): Promise<void> {
      await pause(WHILE_MS);
      const { status } = await apart.call<Session>(`/v1/sessions/${session.id}`);
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

for (const hours of [1, -1]) {
  test(`a clock that is set by ${hours} h ends no session`, async () => {
    await using scene = await openScene();
    scene.setClock(hours * HOUR_MS);
    await scene.checkSession();
  });

  test(`a clock that is set by ${hours} h while core is away ends no session`, async () => {
    await using scene = await openScene();
    scene.setClock(hours * HOUR_MS, ['runner', 'gateway']);
    await scene.apart.kill('core'); // and a new start
    await scene.checkSession();
  });
}

test.run();
