/** `tabern init`: what it makes is whole, its types are the SDK's, and nothing is written over. */
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
import { CliError } from '../../../runner/cli/config.ts';
import { init } from '../../../runner/cli/init.ts';
import { errorOf } from '../../support/fault.ts';
import { terminal } from '../../support/servers/scripted.ts';
import { tempDirectory } from '../../support/temp.ts';

const cli = suite('runner/cli/init');
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Makes the project, with what `npm install` would bring. */
async function made(dir: string, name: string) {
  const { cli: opened, out, said } = terminal('', dir);
  assert.is(await init(name, opened), 0);
  const root = join(dir, name);
  mkdirSync(join(root, 'node_modules'));
  const installed = join(ROOT, 'node_modules', 'playwright-core');
  symlinkSync(installed, join(root, 'node_modules', 'playwright-core'));
  return { root, out, said };
}

function check(root: string): string {
  const compiler = join(ROOT, 'node_modules', '.bin', 'tsc');
  const { stdout, status } = spawnSync(compiler, ['-p', root], { encoding: 'utf8' });
  return status === 0 ? '' : stdout;
}

cli('makes a project that compiles, and says what to do next', async () => {
  await using dir = tempDirectory();
  const { root, out, said } = await made(dir.path, 'My First');
  assert.is(check(root), '');
  const json = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.is(json.name, 'my-first');
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.equal(json.dependencies, {
    'playwright-core': own.devDependencies['playwright-core'],
  });
  assert.ok(out.includes(join('My First', 'index.ts')));
  assert.match(said.join(), 'tabern publish index.ts');
});

cli('its tabern.d.ts says what runner/sdk says', () => {
  const read = (name: string) => readFileSync(join(ROOT, 'runner', name), 'utf8');
  const registry = read('sdk/registry.ts');
  const [, ...parts] = registry.split(/^(?=export function defineFn<)/m);
  const overloads = parts.map((part) => part.slice(0, part.indexOf('): void;\n') + 9)).join('');
  const body = `${read('sdk/types.ts')}\n${overloads}`.replace(/^(?=.)/gm, '  ');
  // a mismatch: put what is expected here into the file
  assert.is(read('cli/tabern.d.ts.txt'), `declare module 'tabern' {\n${body}}\n`);
});

cli('its function is the one that the first page of README.md shows', async () => {
  await using dir = tempDirectory();
  const { root } = await made(dir.path, 'first');
  const code = readFileSync(join(root, 'index.ts'), 'utf8').replace(/^\/\*\*.*\n/m, '');
  assert.match(readFileSync(join(ROOT, 'README.md'), 'utf8'), code);
});

cli('its types are those that the service checks: a wrong handler does not compile', async () => {
  await using dir = tempDirectory();
  const { root } = await made(dir.path, 'first');
  const wrong = `import { defineFn } from 'tabern';
defineFn('wrong', async (ctx) => ctx.session.connectURL);
defineFn('timed', async () => 1, { sessionConfig: { timeout: '60' } });
`;
  writeFileSync(join(root, 'wrong.ts'), wrong);
  const said = check(root);
  assert.match(said, /wrong\.ts\(2.*connectURL/);
  assert.match(said, /wrong\.ts\(3/);
});

cli('writes over nothing, and then writes nothing at all', async () => {
  await using dir = tempDirectory();
  writeFileSync(join(dir.path, 'tsconfig.json'), 'mine');
  const { cli: opened } = terminal('', dir.path);
  const error = await errorOf(init('', opened));
  assert.instance(error, CliError);
  assert.match((error as Error).message, /^tsconfig\.json: already there/);
  assert.equal(readdirSync(dir.path), ['tsconfig.json']);
  assert.is(readFileSync(join(dir.path, 'tsconfig.json'), 'utf8'), 'mine');
});

cli('makes it in the current directory when none is named', async () => {
  await using dir = tempDirectory();
  const { cli: opened } = terminal('', dir.path);
  assert.is(await init('', opened), 0);
  assert.ok(existsSync(join(dir.path, 'index.ts')));
});

cli.run();
