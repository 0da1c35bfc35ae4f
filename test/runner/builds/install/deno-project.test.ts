/** Builds of projects without a package.json: imported packages are installed or refused. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BuildFailure } from '../../../../runner/builds/build-failure.ts';
import { fromDeno } from '../../../../runner/builds/install/deno-project.ts';
import { buildOf, DEFINES } from '../../../support/runner/build.ts';
import { directory } from '../../../support/runner/project.ts';
import { openRegistry } from '../../../support/servers/registry.ts';

const test = suite('runner/builds/install/deno-project');
type Files = Record<string, string>;

/** npm with settings of its own and without any of this machine. */
async function built(files: Files, settings: string[]) {
  await using dir = directory({ npmrc: [...settings, 'fetch-retries=0', ''].join('\n') });
  const { PATH = '', npm_execpath } = process.env;
  const npm = npm_execpath === undefined ? {} : { npm_execpath };
  const env = { PATH, ...npm, HOME: dir.path, npm_config_userconfig: join(dir.path, 'npmrc') };
  return await buildOf(files, { env });
}

/** The generated files of the project, and its log. */
async function prepared(files: Files, namesJsr = false) {
  await using project = directory(files);
  const said: string[] = [];
  const line = (_: string, text: string) => void said.push(text);
  const ofJsr = await fromDeno(project.path, { namesJsr, line });
  const read = (name: string) => readFile(join(project.path, name), 'utf8').catch(() => undefined);
  const made = await read('package.json');
  return { ofJsr, made, npmrc: await read('.npmrc'), said: said.join('\n') };
}

test('a build installs the npm and jsr packages that deno.json and the sources name', async () => {
  await using registry = await openRegistry({
    one: '1.2.3',
    two: '2.0.0',
    '@jsr/std__hex': '1.0.5',
  });
  const { success, text, failure } = await built(
    {
      'deno.json': '{"imports": {"one": "npm:one@^1.2.0", "tabern": "npm:tabern@1"}}',
      'index.ts': `
        import { name } from 'one'; import { name as hex } from 'jsr:@std/hex@1';
        import { two } from './two.ts'; ${DEFINES} console.debug(name, hex, two)`,
      'two.ts': `export const two = (await import('npm:two')).name;`,
    },
    [`registry=${registry.url}`, `@jsr:registry=${registry.url}`],
  );
  assert.is(success?.manifests.length, 1, `${failure?.message}\n${text}`);
  assert.match(text, 'its dependencies: @jsr/std__hex@1, one@^1.2.0, tabern@1, two@*');
});

test('a jsr package that cannot be installed fails the build with advice', async () => {
  await using registry = await openRegistry({});
  const { failure } = await built({ 'index.ts': `import 'jsr:@std/hex@1'; ${DEFINES}` }, [
    `registry=${registry.url}`,
    `@jsr:registry=${registry.url}`,
  ]);
  assert.is(failure?.code, 'BUILD_ERROR');
  assert.match(
    failure?.message ?? '',
    /jsr:@std\/hex: the service must reach https:\/\/npm\.jsr\.io/,
  );
  assert.match(failure?.message ?? '', /use packages of npm$/);
});

test('an existing package.json counts alone, and without imports none is generated', async () => {
  const deno = { 'deno.json': '{"imports": {"one": "npm:one@1"}}' };
  const { made, said } = await prepared({ ...deno, 'package.json': '{}' });
  assert.equal([made, said], ['{}', '']);
  assert.is((await prepared({ 'index.ts': `import './two.ts';` })).made, undefined);
});

test('the public jsr mirror is used unless the operator names another', async () => {
  const files = { 'deno.lock': '{}', 'index.ts': `import 'jsr:@std/hex@1';` };
  const asked = await prepared(files);
  assert.equal(asked.ofJsr, ['@jsr/std__hex']);
  assert.is(asked.npmrc, '@jsr:registry=https://npm.jsr.io\n');
  assert.match(asked.said, 'deno.lock is not read');
  assert.is((await prepared(files, true)).npmrc, undefined);
  assert.is((await prepared({ 'index.ts': `import 'npm:one';` })).npmrc, undefined);
});

test('a package in two versions, and a specifier without a name, are refused', async () => {
  for (const [source, says] of [
    [`import 'npm:one@1'; import 'npm:one@2/x';`, /one is imported in two versions, 1 and 2/],
    [`import 'jsr:std@1';`, /jsr:std@1 names no package; write npm:name@version/],
  ] as const) {
    try {
      await prepared({ 'index.ts': source });
      assert.unreachable(source);
    } catch (error) {
      assert.instance(error, BuildFailure);
      assert.match((error as Error).message, says);
    }
  }
});

test.run();
