/**
 * The npm package "@tabern/functions" of an author: installed without a registry, without
 * dependencies, with types that every strict compiler accepts, and replaced by the service's SDK in
 * a build.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke } from '../../support/clients/functions.ts';
import { functionIds, shell } from '../../support/clients/journey.ts';
import { boot } from '../../support/service/stack.ts';
import { type TempDirectory, tempDirectory, writeTree } from '../../support/temp.ts';

const ROOT = join(import.meta.dirname, '../../..');
const LAUNCHER = join(ROOT, 'gateway/tabern.js');
const PACKAGING = join(ROOT, 'gateway/packaging/package.ts');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
/** The package of the service has 428 MB with its dependencies. */
const SIZE_MAX_BYTES = 100_000;
const NO_REGISTRY = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_cache: '' };

const STRICT = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', 'false'].concat(
  [
    '--exactOptionalPropertyTypes',
    '--noUncheckedIndexedAccess',
    '--noPropertyAccessFromIndexSignature',
  ],
  ['--target', 'es2022', '--types', ''],
);
/** Settings of modules, and a library with and without AbortSignal. */
const COMPILERS: [name: string, flags: string[]][] = [
  ['node16', ['--module', 'node16']],
  ['nodenext', ['--module', 'nodenext']],
  ['bundler', ['--module', 'esnext', '--moduleResolution', 'bundler']],
].flatMap(([name, flags]): [string, string[]][] => [
  [`${name}, es2022`, [...(flags as string[]), '--lib', 'es2022']],
  [`${name}, dom`, [...(flags as string[]), '--lib', 'es2022,dom']],
]);

const AUTHOR = {
  'package.json': '{"name":"author","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn, type FunctionContext } from '@tabern/functions';
import './second.ts';

const open = async (ctx: FunctionContext<{ word: string }>, params: { word: string }) => {
  if (ctx.signal.aborted) throw new Error('aborted');
  return params.word + ctx.params.word + ctx.invocation.id.length;
};
defineFn('first', open, { sessionConfig: { timeout: 60, browserSettings: { blockAds: true } } });
`,
  'second.ts': `import { defineFn } from 'tabern';
defineFn('second', async () => 2);
`,
};
/** Each has one error, in its last line. */
const WRONG: [name: string, code: string, error: RegExp][] = [
  ['a name', 'defineFn(7, async () => 1);', /TS2769|TS2345/],
  ['a member of the context', "defineFn('x', async (ctx) => ctx.session.connectURL);", /TS2551/],
  ['a setting', "defineFn('x', async () => 1, { sessionConfig: { timeout: '60' } });", /TS2769/],
];

const journey = suite('journey/install/functions-package');

/** The tarball that a release publishes. */
async function packed(): Promise<TempDirectory & { tarball: string }> {
  const dir = tempDirectory();
  const run = promisify(execFile);
  writeTree(dir.path, { 'js/runner/sdk/deleted.js': '' }); // of an earlier build
  await run(process.execPath, [PACKAGING, '--sdk', '--out', join(dir.path, 'js')]);
  const cwd = join(dir.path, 'functions');
  await run('npm', ['pack', '--offline', '--pack-destination', dir.path], { cwd });
  const name = must(
    readdirSync(dir.path).find((one) => one.endsWith('.tgz')),
    'a tarball',
  );
  return { ...dir, tarball: join(dir.path, name) };
}

/** A project with the tarball installed, and no registry. */
async function authors(tarball: string): Promise<TempDirectory> {
  const dir = tempDirectory();
  writeTree(dir.path, AUTHOR);
  mkdirSync(join(dir.path, '.cache'));
  const env = { ...NO_REGISTRY, npm_config_cache: join(dir.path, '.cache') };
  const options = { cwd: dir.path, env };
  const { code, stderr } = await shell(['npm', 'install', '--no-audit', tarball], options);
  is(code, 0, stderr);
  return dir;
}

journey('it installs without a registry, is small and has no dependencies', async () => {
  await using pack = await packed();
  await using dir = await authors(pack.tarball);
  is(statSync(pack.tarball).size < SIZE_MAX_BYTES, true);
  const modules = join(dir.path, 'node_modules');
  const installed = readdirSync(modules).filter((one) => !one.startsWith('.'));
  equal(installed, ['@tabern'], 'nothing else');
  const listed = await shell(['npm', 'ls', '--all', '--json'], { cwd: dir.path, env: NO_REGISTRY });
  const { dependencies } = JSON.parse(listed.stdout);
  equal(Object.keys(dependencies), ['@tabern/functions']);
  is('dependencies' in dependencies['@tabern/functions'], false);

  const own = join(modules, '@tabern/functions');
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  const release = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  equal([manifest.version, manifest.license], [release.version, release.license]);
  equal(manifest.publishConfig, { access: 'public' }, 'npm publishes scoped packages as private');
  const kinds = Object.keys(manifest).filter((name) => /dependencies|scripts/i.test(name));
  equal(kinds, []);
  const files = readdirSync(own).filter((name) => !/\.(?:js|d\.ts)$/.test(name));
  equal(files.sort(), ['LICENSE', 'README.md', 'package.json']);
  is(readdirSync(own).includes('deleted.js'), false, 'a module that is no longer there');
  const code = "import('@tabern/functions').then((all) => console.log(Object.keys(all).join()))";
  const options = { cwd: dir.path, env: {} };
  const { stdout, stderr } = await shell([process.execPath, '-e', code], options);
  is(stdout, 'defineFn\n', stderr);
});

journey('a strict compiler accepts its types, and refuses a wrong use', async () => {
  await using pack = await packed();
  await using dir = await authors(pack.tarball);
  const inProject = { cwd: dir.path, env: {} };
  const code = AUTHOR['index.ts'].replace("import './second.ts';\n", '');
  const wrong = WRONG.map(([, line], index): [string, string] => [
    `wrong-${index}.ts`,
    `import { defineFn } from '@tabern/functions';\n${line}\n`,
  ]);
  writeTree(dir.path, { 'good.ts': code, ...Object.fromEntries(wrong) });
  for (const [name, flags] of COMPILERS) {
    const good = await shell([TSC, ...STRICT, ...flags, 'good.ts'], inProject);
    is(good.code, 0, `${name}: ${good.stdout}`);
    const files = wrong.map(([file]) => file);
    const bad = await shell([TSC, ...STRICT, ...flags, ...files], inProject);
    const errors = bad.stdout.split('\n').filter((line) => line.includes('error TS'));
    is(errors.length, WRONG.length, `${name}: ${bad.stdout}`);
    for (const [index, [what, , error]] of WRONG.entries()) {
      match(errors[index] ?? '', `wrong-${index}.ts(2,`, `${name}: ${what}`);
      match(errors[index] ?? '', error, `${name}: ${what}`);
    }
  }
});

journey('functions of both names are published together and run', async () => {
  await using pack = await packed();
  await using dir = await authors(pack.tarball);
  const lock = readFileSync(join(dir.path, 'package-lock.json'), 'utf8');
  match(lock, '"node_modules/@tabern/functions"', 'the build must drop it: it is outside');
  await using stack = await boot();
  const env = { TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const command = [process.execPath, LAUNCHER, 'publish', 'index.ts'];
  const published = await shell(command, { cwd: dir.path, env });
  is(published.code, 0, published.stdout + published.stderr + stack.logs());
  const { first = '', second = '' } = await functionIds(stack);
  const one = await ended(stack, (await invoke(stack, first, { word: 'ab' })).id);
  equal([one.status, one.results], ['COMPLETED', 'abab36'], stack.logs());
  const two = await ended(stack, (await invoke(stack, second)).id);
  equal([two.status, two.results], ['COMPLETED', 2], stack.logs());
});

journey.run();
