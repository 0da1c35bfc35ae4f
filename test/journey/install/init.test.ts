/**
 * `tabern init` for an author without a registry, npm and `tabern` in PATH: the types are in the
 * project, and the printed commands work as they are.
 */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { shell } from '../../support/clients/journey.ts';
import { startSite } from '../../support/servers/site.ts';
import { builtBinary } from '../../support/service/binary.ts';
import { boot } from '../../support/service/stack.ts';
import { type TempDirectory, tempDirectory } from '../../support/temp.ts';

const ROOT = join(import.meta.dirname, '../../..');
const LAUNCHER = join(ROOT, 'gateway/tabern.js');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
/** Nothing listens there. */
const NO_REGISTRY = 'http://127.0.0.1:9/';

const journey = suite('journey/install/init');

/** A directory with `bin`, the whole PATH: it has Node and nothing else. */
function bare(): TempDirectory & { env: Record<string, string> } {
  const dir = tempDirectory();
  mkdirSync(join(dir.path, 'bin'));
  symlinkSync(process.execPath, join(dir.path, 'bin/node'));
  const env = {
    PATH: join(dir.path, 'bin'),
    npm_config_registry: NO_REGISTRY,
    TABERN_CACHE_DIR: join(dir.path, 'cache'),
  };
  return { ...dir, env };
}

/** Creates a project and runs the printed commands; returns what they print. */
async function firstFunction(program: readonly string[], called: string): Promise<void> {
  await using dir = bare();
  await using site = await startSite();
  await using stack = await boot();
  const { stderr, code } = await shell([...program, 'init', 'first'], {
    cwd: dir.path,
    env: dir.env,
  });
  is(code, 0, stderr);
  const [heading, ...commands] = stderr.trimEnd().split('\n');
  is(heading, 'next:');
  const expected = ['cd first', `${called} publish index.ts`, `${called} invoke title`];
  equal(
    commands,
    expected.map((line) => `  ${line}`),
  );
  const types = readFileSync(join(dir.path, 'first/tabern.d.ts'), 'utf8');
  match(types, /^declare module 'tabern' \{/);

  const params = JSON.stringify({ url: `${site.url}/rooms` });
  const script = `${commands.join(' && ')} --params '${params}'`;
  const env = { ...dir.env, TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const ran = await shell(['/bin/sh', '-c', script], { cwd: dir.path, env });
  is(ran.code, 0, ran.stdout + ran.stderr + stack.logs());
  match(ran.stdout, /"title": "Rooms"/);
}

journey('a project of a checkout is published and invoked with Node in PATH alone', async () => {
  await firstFunction([process.execPath, LAUNCHER], `node ${LAUNCHER}`);
});

journey('a project of the executable is published and invoked', async () => {
  await using built = await builtBinary();
  const program = join(built.path, 'tabern');
  await firstFunction([program], program);
});

journey('the compiler knows the SDK before anything is installed', async () => {
  await using dir = bare();
  const inDirectory = { cwd: dir.path, env: dir.env };
  is((await shell([process.execPath, LAUNCHER, 'init', 'first'], inDirectory)).code, 0);
  const checked = await shell([TSC, '-p', 'first'], inDirectory);
  const errors = checked.stdout.split('\n').filter((line) => line.includes('error TS'));
  is(errors.length, 1, checked.stdout);
  match(errors[0] ?? '', /TS2307: Cannot find module 'playwright-core'/);
});

journey.run();
