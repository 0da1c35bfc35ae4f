/** Starts, spares and the end of hosts in the real jail. Runs are tested in hosts.test.ts. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { HostPool } from '../../../runner/functions/host-pool.ts';
import {
  type HostOptions,
  MEMORY_MAX_BYTES,
  startHost,
} from '../../../runner/functions/host-process.ts';
import { node } from '../../../runner/functions/runtime.ts';
import type { Jail } from '../../../runner/jail/jail.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/functions/host-pool');
const log = openLog({ role: 'test', level: 'silent' });

async function openPool(options: { spares: number; sparesKeptMs?: number; jail?: Jail }) {
  const runDir = await mkdtemp(join(tmpdir(), 'pool-'));
  const jail = options.jail ?? (await openJail({ sandbox: 'auto', log }));
  const pool = new HostPool({ runtime: node(), runDir, log, ...options, jail });
  return {
    pool,
    runDir,
    async [Symbol.asyncDispose]() {
      await pool.close();
      await rm(runDir, { recursive: true, force: true });
    },
  };
}

test('a spare is started after the first use, not before', async () => {
  await using yard = await openPool({ spares: 1 });
  assert.is(yard.pool.processes(), 0);
  const first = await yard.pool.fresh();
  await until(() => yard.pool.processes() === 2);
  assert.ok(first.isUsable());
});

test('without spares only claimed hosts run', async () => {
  await using yard = await openPool({ spares: 0 });
  await yard.pool.fresh();
  assert.is(yard.pool.processes(), 1);
});

test('released spares end and are started again after the next use', async () => {
  await using yard = await openPool({ spares: 1 });
  const first = await yard.pool.fresh();
  await until(() => yard.pool.processes() === 2);
  yard.pool.releaseSpares();
  await until(() => yard.pool.processes() === 1);
  const second = await yard.pool.fresh();
  assert.is.not(second, first);
  await until(() => yard.pool.processes() === 3);
  assert.ok(first.isUsable() && second.isUsable());
});

test('a host that starts after the spare time leaves no spare', async () => {
  await using yard = await openPool({ spares: 1, sparesKeptMs: 1 });
  await yard.pool.fresh(); // takes longer
  assert.is(yard.pool.processes(), 1);
});

test('close waits for starting hosts and removes their directories', async () => {
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

test('close does not wait for a host to become ready', async () => {
  for (const script of SILENT) {
    const { jail, launched } = await openSilent(script);
    await using yard = await openPool({ spares: 0, jail });
    const asked = errorOf(yard.pool.fresh());
    await launched(join(yard.runDir, 'h1'));
    await yard.pool.close();
    assert.is(((await asked) as Error).message, 'the runner is ending');
    assert.equal(await readdir(yard.runDir), []);
  }
});

test('a host that is not ready in time is killed, and its start rejects', async () => {
  for (const script of SILENT) {
    const { jail } = await openSilent(script);
    await using dir = tempDirectory();
    const options = { ...hostOptions(jail, dir.path), startTimeoutMs: 500 };
    const error = await errorOf(startHost(options));
    assert.match(String(error), /the function host was not ready in 500 ms/);
    assert.equal(await readdir(dir.path), []);
  }
});

test('a failed jail start leaves no directory', async () => {
  await using dir = tempDirectory();
  const jail: Jail = {
    ...(await openJail({ sandbox: 'auto', log })),
    launch() {
      throw new Error('no jail');
    },
  };
  const error = await errorOf(startHost(hostOptions(jail, dir.path)));
  assert.is((error as Error).message, 'no jail');
  assert.equal(await readdir(dir.path), []);
});

function hostOptions(jail: Jail, path: string): HostOptions {
  const own = { jail, dir: join(path, 'h'), signal: new AbortController().signal, log };
  const memoryMaxBytes = MEMORY_MAX_BYTES;
  return { ...own, runtime: node(), isolation: 'warm', openEgress: undefined, memoryMaxBytes };
}

/** Run instead of our host: one never connects to its control socket, one connects silently. */
const SILENT = [
  'setInterval(() => {}, 1_000)',
  `setInterval(() => {}, 1_000);
   require('node:net').connect(process.argv[1]).on('error', () => {})`,
];

async function openSilent(script: string) {
  const real = await openJail({ sandbox: 'auto', log });
  let isLaunched = false;
  const launch: Jail['launch'] = (spec) => {
    isLaunched = true;
    return real.launch({
      ...spec,
      argv(at) {
        const argv = spec.argv(at);
        const main = argv.indexOf(at('/app/runner/host/main.ts'));
        return [...argv.slice(0, main), '-e', script, ...argv.slice(main + 1)];
      },
    });
  };
  return {
    jail: { ...real, launch },
    /** Settles when the process makes no more progress. */
    async launched(dir: string) {
      await until(() => isLaunched);
      if (!script.includes('connect') || !real.hasUnixSockets) return;
      await until(async () => !(await readdir(dir)).includes('ctl.sock')); // it is taken
    },
  };
}

test.run();
