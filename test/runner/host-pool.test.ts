/** When there are spares, in the real jail. What a host does is in hosts.test.ts. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../proto/log.ts';
import { HostPool } from '../../runner/host-pool.ts';
import { type Jail, openJail } from '../../runner/jail/ladder.ts';
import { node } from '../../runner/runtime.ts';
import { errorOf } from '../support/fault.ts';
import { until } from '../support/poll.ts';

const test = suite('runner/host-pool');
const log = openLog({ role: 'test', level: 'silent' });

type Options = { spares: number; sparesKeptMs?: number };

/** `script` runs where our host would: its arguments are as in host/main.ts. */
async function openPool({ script, ...options }: Options & { script?: string }) {
  const runDir = await mkdtemp(join(tmpdir(), 'pool-'));
  const real = await openJail({ sandbox: 'auto', log });
  const jail: Jail = script === undefined ? real : { ...real, launch: launchScript(real, script) };
  const pool = new HostPool({ jail, runtime: node(), runDir, log, ...options });
  return {
    pool,
    runDir,
    async [Symbol.asyncDispose]() {
      await pool.close();
      await rm(runDir, { recursive: true, force: true });
    },
  };
}

function launchScript(real: Jail, script: string): Jail['launch'] {
  return (spec) =>
    real.launch({
      ...spec,
      argv: (at) => {
        const argv = spec.argv(at);
        const main = argv.indexOf(at('/app/runner/host/main.ts'));
        return [...argv.slice(0, main), '-e', script, ...argv.slice(main + 1)];
      },
    });
}

test('there is no spare before the first use, and one after it', async () => {
  await using yard = await openPool({ spares: 1 });
  assert.is(yard.pool.processes(), 0);
  const first = await yard.pool.fresh();
  await until(() => yard.pool.processes() === 2);
  assert.ok(first.isUsable());
});

test('without spares nothing runs that nobody asked for', async () => {
  await using yard = await openPool({ spares: 0 });
  await yard.pool.fresh();
  assert.is(yard.pool.processes(), 1);
});

test('spares end when nobody asks for hosts, and come again with a use', async () => {
  await using yard = await openPool({ spares: 1 });
  const first = await yard.pool.fresh();
  await until(() => yard.pool.processes() === 2);
  yard.pool.rest();
  await until(() => yard.pool.processes() === 1);
  const second = await yard.pool.fresh();
  assert.is.not(second, first);
  await until(() => yard.pool.processes() === 3);
  assert.ok(first.isUsable() && second.isUsable());
});

test('a use is forgotten after its time: what starts later leaves no spare', async () => {
  await using yard = await openPool({ spares: 1, sparesKeptMs: 1 });
  await yard.pool.fresh(); // takes longer
  assert.is(yard.pool.processes(), 1);
});

test('the end waits for what still starts, and nothing is left of it', async () => {
  await using yard = await openPool({ spares: 1 });
  await yard.pool.fresh();
  const asked = [yard.pool.fresh(), yard.pool.fresh()].map((host) =>
    host.then(
      () => 'a host',
      (error: Error) => error.message,
    ),
  );
  await yard.pool.close();
  assert.equal(await readdir(yard.runDir), []);
  assert.equal(await Promise.all(asked), Array(2).fill('the runner is ending'));
  assert.is(yard.pool.processes(), 0);
});

test('the end waits for no host that never comes, nor for one that says nothing', async () => {
  for (const [script, hasCome] of [
    ['setInterval(() => {}, 1_000)', false],
    ['require("node:net").connect(process.argv[1])', true],
  ] as const) {
    await using yard = await openPool({ spares: 0, script });
    const asked = errorOf(yard.pool.fresh());
    const inside = () => readdir(join(yard.runDir, 'h1')).catch((): string[] => []);
    await until(async () => (await inside()).includes('ctl.sock'));
    if (hasCome) await until(async () => !(await inside()).includes('ctl.sock')); // taken
    await yard.pool.close();
    assert.is(((await asked) as Error).message, 'the runner is ending');
    assert.equal(await readdir(yard.runDir), []);
  }
});

test.run();
