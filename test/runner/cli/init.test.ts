/** `tabern init`: the project compiles, its types are the SDK's, no file is overwritten. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { declaration } from '../../../gateway/packaging/functions.ts';
import { CliError } from '../../../runner/cli/config.ts';
import { init } from '../../../runner/cli/init.ts';
import { errorOf } from '../../support/fault.ts';
import { terminal } from '../../support/servers/scripted.ts';
import { tempDirectory } from '../../support/temp.ts';

const cli = suite('runner/cli/init');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SHELL = { command: 'tabern', hasNpm: true };

/** Creates the project, with its dependency installed. */
async function created(dir: string, name: string, shell = SHELL) {
  const { cli: opened, out, said } = terminal('', dir);
  assert.is(await init(name, opened, shell), 0);
  const root = join(dir, name);
  mkdirSync(join(root, 'node_modules'));
  const installed = join(ROOT, 'node_modules', 'playwright-core');
  symlinkSync(installed, join(root, 'node_modules', 'playwright-core'));
  return { root, out, said };
}

function check(root: string, flags: readonly string[] = ['-p', root]): string {
  const compiler = join(ROOT, 'node_modules', '.bin', 'tsc');
  const { stdout, status } = spawnSync(compiler, flags, { encoding: 'utf8' });
  return status === 0 ? '' : stdout;
}

cli('the new project compiles, and has the driver that the service is tested with', async () => {
  await using dir = tempDirectory();
  const { root, out } = await created(dir.path, 'My First');
  assert.is(check(root), '');
  const json = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.is(json.name, 'my-first');
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.equal(json.dependencies, {
    'playwright-core': own.devDependencies['playwright-core'],
  });
  assert.ok(out.includes(join('My First', 'index.ts')));
});

cli('tabern.d.ts has the types of runner/sdk', async () => {
  await using dir = tempDirectory();
  const { root } = await created(dir.path, 'first');
  const text = readFileSync(join(root, 'tabern.d.ts'), 'utf8');
  // after a mismatch: npm run prepare
  assert.is(text, await declaration(ROOT));
  const names = ['JsonValue', 'FunctionContext', 'Handler', 'SessionConfig', 'FunctionConfig'];
  for (const name of names) assert.match(text, new RegExp(`^  export type ${name}\\b`, 'm'));
  assert.is(text.match(/^ {2}export function defineFn</gm)?.length, 2, 'each overload');
});

cli('tabern.d.ts compiles without the types of a platform', async () => {
  await using dir = tempDirectory();
  const { root } = await created(dir.path, 'first');
  const strict = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', 'false'];
  const alone = ['--types', '', '--lib', 'es2022', '--target', 'es2022'];
  assert.is(check(root, [...strict, ...alone, join(root, 'tabern.d.ts')]), '');
});

cli('the printed commands call tabern as the shell finds it, and npm where it is', async () => {
  await using dir = tempDirectory();
  const { said } = await created(dir.path, 'My First', SHELL);
  assert.equal(said, [
    'next:',
    "  cd 'My First'",
    '  npm install',
    '  tabern dev index.ts',
    '  tabern publish index.ts',
    '  tabern invoke title',
  ]);
  const program = 'node /opt/tabern/gateway/tabern.js';
  const bare = await created(dir.path, 'other', { command: program, hasNpm: false });
  assert.equal(bare.said, [
    'next:',
    '  cd other',
    `  ${program} publish index.ts`,
    `  ${program} invoke title`,
  ]);
});

cli('the example function is the one in README.md', async () => {
  await using dir = tempDirectory();
  const { root } = await created(dir.path, 'first');
  const code = readFileSync(join(root, 'index.ts'), 'utf8').replace(/^\/\*\*.*\n/m, '');
  assert.match(readFileSync(join(ROOT, 'README.md'), 'utf8'), code);
});

cli('a handler with a type error does not compile', async () => {
  await using dir = tempDirectory();
  const { root } = await created(dir.path, 'first');
  const wrong = `import { defineFn } from 'tabern';
defineFn('wrong', async (ctx) => ctx.session.connectURL);
defineFn('timed', async () => 1, { sessionConfig: { timeout: '60' } });
`;
  writeFileSync(join(root, 'wrong.ts'), wrong);
  const said = check(root);
  assert.match(said, /wrong\.ts\(2.*connectURL/);
  assert.match(said, /wrong\.ts\(3/);
});

cli('an existing file is not overwritten, and no other file is written', async () => {
  await using dir = tempDirectory();
  writeFileSync(join(dir.path, 'tsconfig.json'), 'mine');
  const { cli: opened } = terminal('', dir.path);
  const error = await errorOf(init('', opened, SHELL));
  assert.instance(error, CliError);
  assert.match((error as Error).message, /^tsconfig\.json: already there/);
  assert.equal(readdirSync(dir.path), ['tsconfig.json']);
  assert.is(readFileSync(join(dir.path, 'tsconfig.json'), 'utf8'), 'mine');
});

cli('without an argument, the project is created in the current directory', async () => {
  await using dir = tempDirectory();
  const { cli: opened } = terminal('', dir.path);
  assert.is(await init('', opened, SHELL), 0);
  assert.ok(existsSync(join(dir.path, 'index.ts')));
});

cli.run();
