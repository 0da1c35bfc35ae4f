/** The engine of hosts, the search for its program, and Deno's permissions. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canRun, findRuntime, node, RuntimeNotFound } from '../../../runner/functions/runtime.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/functions/runtime');
const LEAVE = {
  read: ['/app', '/fn'],
  sockets: ['/run/ctl.sock', '/run/cdp.sock'],
  tmp: '/tmp',
  cdpPort: 9222,
  hasEgress: false,
};

/** Whose packages are those of an empty directory. */
async function refused(env: Record<string, string>, from: string): Promise<string> {
  try {
    await findRuntime('deno', env, pathToFileURL(join(from, 'x.ts')).href);
  } catch (error) {
    if (error instanceof RuntimeNotFound) return error.message;
    throw error;
  }
  throw new Error('a Deno was found');
}

test('the Node runtime is this Node', async () => {
  const found = await findRuntime('node', {});
  assert.is(found.program, process.execPath);
  assert.is(found.version, process.versions.node);
  assert.not.ok(node().flags(LEAVE).includes('--use-env-proxy'));
  assert.ok(
    node()
      .flags({ ...LEAVE, hasEgress: true })
      .includes('--use-env-proxy'),
  );
});

test('Deno is found by the setting, the npm package or PATH', async () => {
  await using dir = tempDirectory();
  const packaged = await findRuntime('deno', {});
  assert.match(packaged.program, /node_modules\/@deno\/linux-[^/]+\/deno$/);
  assert.match(packaged.version, /^2\./);
  const elsewhere = pathToFileURL(join(dir.path, 'x.ts')).href;
  symlinkSync(packaged.program, join(dir.path, 'deno'));
  const inPath = await findRuntime('deno', { PATH: `relative:${dir.path}` }, elsewhere);
  assert.is(inPath.program, packaged.program, 'the program that the link leads to');
  const script = join(packaged.program, '../../../deno/bin.cjs');
  const named = await findRuntime('deno', { TABERN_DENO_PATH: script }, elsewhere);
  assert.is(named.program, packaged.program, 'npm’s script is a way to it');
});

test('a missing Deno fails the start with instructions', async () => {
  await using dir = tempDirectory();
  const missing = await refused({ PATH: dir.path }, dir.path);
  assert.match(missing, /TABERN_ENGINE is deno, but there is no Deno here/);
  assert.match(missing, /TABERN_DENO_PATH/);
  const named = await refused({ TABERN_DENO_PATH: '/nowhere/deno' }, dir.path);
  assert.is(named, 'TABERN_DENO_PATH: cannot run /nowhere/deno');
  assert.match(await refused({ TABERN_DENO_PATH: '/bin/true' }, dir.path), /is not Deno/);
  assert.match(await refused({ TABERN_DENO_PATH: '/bin/false' }, dir.path), /does not start/);
});

test('Deno is permitted its own paths, sockets and port, and nothing else', async () => {
  const { flags } = await findRuntime('deno', {});
  assert.equal(flags(LEAVE), [
    ...['run', '--quiet', '--no-prompt', '--no-remote', '--no-lock', '--no-config'],
    ...['--cached-only', '--node-modules-dir=manual', '--allow-env'],
    '--allow-sys=homedir,osRelease',
    '--ignore-read=/proc,/run/WSL,/etc/os-release',
    '--allow-read=/app,/fn,/run/ctl.sock,/run/cdp.sock,/tmp',
    '--allow-write=/tmp,/run/ctl.sock,/run/cdp.sock',
    '--allow-net=127.0.0.1:9222,unix:/run/ctl.sock,unix:/run/cdp.sock',
  ]);
  assert.ok(flags({ ...LEAVE, hasEgress: true }).includes('--allow-net'), 'the egress decides');
});

test('Deno is not used where unix sockets are not allowed', async () => {
  const deno = await findRuntime('deno', {});
  assert.not(canRun(deno, { hasUnixSockets: false }));
  assert.ok(canRun(deno, { hasUnixSockets: true }));
  assert.ok(canRun(node(), { hasUnixSockets: false }));
});

test.run();
