/** What installs leave for the next build of the same project: what is kept, for whom, how long. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../proto/log.ts';
import { must } from '../../proto/must.ts';
import { openInstalled } from '../../runner/installed.ts';
import { directory } from '../support/project.ts';
import { tempDirectory } from '../support/temp.ts';

const DAY_MS = 24 * 3_600_000;
const NPM = ['npm', 'ci'];
const log = openLog({ role: 'test', level: 'silent' });
const kept = suite('runner/installed');

const LOCKED = {
  'package.json': '{"dependencies": {"zod": "4"}}',
  'package-lock.json': '{"lockfileVersion": 3, "packages": {"node_modules/zod": {}}}',
};

/** A project as an install has left it. */
function project(files: Record<string, string> = {}) {
  return directory({ ...LOCKED, 'node_modules/zod/index.js': 'export const z = 1;', ...files });
}

type Limits = { ofProjectMax?: number; totalMaxBytes?: number; entryMaxBytes?: number };
function open(dir: string, limits: Limits = {}, now = () => Date.now()) {
  return openInstalled({ dir, now, log, limits });
}

kept('gives the next build the same files, without a copy', async () => {
  await using dir = tempDirectory();
  await using first = project();
  await using second = directory(LOCKED);
  symlinkSync('../zod/index.js', join(first.path, 'node_modules', 'zod', 'link.js'));
  const installed = await open(dir.path);
  const key = must(await installed.keyOf(first.path, NPM), 'key');
  assert.is(await installed.use('p', key, second.path), false, 'nothing is kept yet');
  assert.is(existsSync(join(second.path, 'node_modules')), false);
  await installed.keep('p', key, first.path);
  rmSync(first.path, { recursive: true });
  assert.is(await installed.keyOf(second.path, NPM), key);
  assert.is(await installed.use('p', key, second.path), true);
  const file = join(second.path, 'node_modules', 'zod', 'index.js');
  assert.is(readFileSync(file, 'utf8'), 'export const z = 1;');
  assert.is(lstatSync(file).nlink, 2);
  assert.is(lstatSync(join(second.path, 'node_modules', 'zod', 'link.js')).isSymbolicLink(), true);
});

kept('of one project, another gets nothing', async () => {
  await using dir = tempDirectory();
  await using one = project();
  await using other = directory(LOCKED);
  const installed = await open(dir.path);
  const key = must(await installed.keyOf(one.path, NPM), 'key');
  await installed.keep('p', key, one.path);
  assert.is(await installed.keyOf(other.path, NPM), key, 'its files are the same');
  assert.is(await installed.use('q', key, other.path), false);
});

for (const [what, files, command] of [
  ['another lock file', { 'package-lock.json': '{"lockfileVersion": 3}' }, NPM],
  ['another package.json', { 'package.json': '{"dependencies": {"zod": "3"}}' }, NPM],
  ['a lock file of pnpm beside it', { 'pnpm-lock.yaml': 'lockfileVersion: 9' }, NPM],
  ['another installer', {}, ['pnpm', 'install']],
] as const) {
  kept(`${what} is another install`, async () => {
    await using dir = tempDirectory();
    await using one = project();
    await using other = project(files);
    const installed = await open(dir.path);
    const keys = [await installed.keyOf(one.path, NPM), await installed.keyOf(other.path, command)];
    assert.is(new Set(keys).size, 2);
    assert.not(keys.includes(undefined));
  });
}

for (const [what, files] of [
  ['a folder', { 'package.json': '{"dependencies": {"zod": "file:./zod"}}' }],
  ['a tarball', { 'package-lock.json': '{"packages": {"a": {"resolved": "file:zod.tgz"}}}' }],
  ['a link', { 'package-lock.json': '{"packages": {"a": {"resolved": "zod", "link": true}}}' }],
  ['a workspace', { 'package.json': '{"workspaces": ["zod"]}' }],
  ['a link of pnpm', { 'pnpm-lock.yaml': 'version: link:zod' }],
] as const) {
  kept(`${what} of the project's own is in no hash: such an install is not kept`, async () => {
    await using dir = tempDirectory();
    await using one = project(files);
    assert.is(await (await open(dir.path)).keyOf(one.path, NPM), undefined);
  });
}

kept(
  'a folder for a lock file fixes nothing, a file among the projects is left alone',
  async () => {
    await using dir = tempDirectory();
    await using one = directory({ 'package.json': '{}', 'pnpm-lock.yaml/a': '' });
    writeFileSync(join(dir.path, 'stray'), '');
    assert.is(await (await open(dir.path)).keyOf(one.path, NPM), undefined);
    assert.ok(existsSync(join(dir.path, 'stray')));
  },
);

kept('without a lock file nothing is fixed', async () => {
  await using dir = tempDirectory();
  await using one = directory({ 'package.json': '{}' });
  assert.is(await (await open(dir.path)).keyOf(one.path, NPM), undefined);
});

/** Which of the keys are still there. */
async function left(dir: string, wanted: readonly (readonly [string, string])[]) {
  const installed = await open(dir);
  const found = wanted.map(async ([projectId, key]) => {
    await using empty = tempDirectory();
    return await installed.use(projectId, key, empty.path);
  });
  return Promise.all(found);
}

kept('a project keeps what it used last, and no more than its share', async () => {
  await using dir = tempDirectory();
  await using one = project();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => name.repeat(64)) as [string, string, string];
  let time = Date.now();
  const installed = await open(dir.path, { ofProjectMax: 2 }, () => time);
  for (const key of [a, b]) {
    time += 1_000;
    await installed.keep('p', key, one.path);
  }
  time += 1_000;
  await using again = tempDirectory();
  assert.is(await installed.use('p', a, again.path), true);
  time += 1_000;
  await installed.keep('p', c, one.path);
  await installed.keep('q', b, one.path);
  const found = await left(dir.path, [
    ['p', a],
    ['p', b],
    ['p', c],
    ['q', b],
  ]);
  assert.equal(found, [true, false, true, true]);
});

kept('all projects together keep what fits, and one install must fit by itself', async () => {
  await using dir = tempDirectory();
  await using small = project({ 'node_modules/zod/index.js': 'x'.repeat(400) });
  await using large = project({ 'node_modules/zod/index.js': 'x'.repeat(900) });
  const key = 'a'.repeat(64);
  let time = Date.now();
  const limits = { totalMaxBytes: 1_000, entryMaxBytes: 800 };
  const installed = await open(dir.path, limits, () => time);
  for (const name of ['p', 'q', 'r']) {
    time += 1_000;
    await installed.keep(name, key, small.path);
  }
  await installed.keep('s', key, large.path);
  const wanted = ['p', 'q', 'r', 's'].map((name) => [name, key] as const);
  assert.equal(await left(dir.path, wanted), [false, true, true, false]);
  assert.equal(readdirSync(dir.path).sort(), ['aside', 'q', 'r'], 'no empty folder stays');
  assert.equal(readdirSync(join(dir.path, 'aside')), []);
});

kept('what nobody used for a week is removed at the next start', async () => {
  await using dir = tempDirectory();
  await using one = project();
  const key = 'a'.repeat(64);
  const before = await open(dir.path, {}, () => Date.now() - 8 * DAY_MS);
  await before.keep('p', key, one.path);
  assert.equal(await left(dir.path, [['p', key]]), [false]);
});

kept('an install that cannot be kept or used again ends no build', async () => {
  await using dir = tempDirectory();
  await using one = project();
  await using bare = directory(LOCKED);
  const key = 'a'.repeat(64);
  const installed = await open(dir.path);
  await installed.keep('p', key, bare.path);
  assert.is(await installed.use('p', key, bare.path), false, 'it had no node_modules');
  await installed.keep('p', key, one.path);
  assert.is(await installed.use('p', key, one.path), false, 'node_modules is there already');
  assert.is(existsSync(join(one.path, 'node_modules')), false, 'npm begins from nothing');
  assert.is(await installed.use('p', key, one.path), true);
});

kept.run();
