/** Compiled modules are kept: where, and that an installation makes all that a start needs. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { boot } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';

const test = suite('gateway/modules');
const GATEWAY = fileURLToPath(new URL('../../gateway/', import.meta.url));
const run = promisify(execFile);

test('a start after the installation compiles no module', async () => {
  await using dir = tempDirectory();
  const env = { NODE_COMPILE_CACHE: dir.path };
  await run(process.execPath, [join(GATEWAY, 'packaging/compile-modules.js')], {
    env: { ...process.env, ...env },
  });
  const made = new Set(filesIn(dir.path));
  assert.ok(made.size > 100);
  await startAndEnd(env);
  const added = filesIn(dir.path).filter((name) => !made.has(name));
  assert.equal(added, []);
});

test('a start without an installation caches the compiled modules', async () => {
  await using dir = tempDirectory();
  await startAndEnd({ NODE_COMPILE_CACHE: dir.path });
  assert.ok(filesIn(dir.path).length > 100);
});

test('without write access to the program, an existing data directory has the cache', async () => {
  await using dir = tempDirectory();
  const data = join(dir.path, 'data');
  mkdirSync(join(dir.path, 'gateway'));
  copyFileSync(join(GATEWAY, 'modules.js'), join(dir.path, 'gateway', 'modules.mjs'));
  writeFileSync(join(dir.path, '.cache'), 'a file: no directory can be made here');
  const kept = async () => {
    const code = `import { keepModules } from './gateway/modules.mjs';
      keepModules(); console.log(process.env.NODE_COMPILE_CACHE)`;
    const argv = ['--input-type=module', '--eval', code];
    const { stdout } = await run(process.execPath, argv, {
      cwd: dir.path,
      env: { TABERN_DATA: data },
    });
    return stdout.trim();
  };
  assert.is(await kept(), 'undefined');
  assert.not(readdirSync(dir.path).includes('data'));
  mkdirSync(data);
  assert.is(await kept(), join(data, 'cache', 'modules'));
});

async function startAndEnd(env: Record<string, string>): Promise<void> {
  await using stack = await boot({ env });
  await stack.runnerPid();
}

function filesIn(path: string): string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.flatMap((one) => (one.isFile() ? [one.name] : [])).sort();
}

test.run();
