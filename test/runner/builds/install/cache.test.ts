/** The cache of installs: its keys, its projects and its limits. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { openInstalled } from '../../../../runner/builds/install/cache.ts';
import { installKey } from '../../../../runner/builds/install/read-build.ts';
import { directory } from '../../../support/runner/project.ts';
import { tempDirectory } from '../../../support/temp.ts';

const DAY_MS = 24 * 3_600_000;
const KEY = 'a'.repeat(64);
const log = openLog({ role: 'test', level: 'silent' });
const kept = suite('runner/builds/install/cache');

const LOCKED = {
  'package.json': '{"dependencies": {"zod": "4"}}',
  'package-lock.json': '{"lockfileVersion": 3, "packages": {"node_modules/zod": {}}}',
};

/** A project after an install. */
function project(files: Record<string, string> = {}) {
  return directory({ ...LOCKED, 'node_modules/zod/index.js': 'export const z = 1;', ...files });
}

type Limits = { ofProjectMax?: number; totalMaxBytes?: number; entryMaxBytes?: number };
function open(dir: string, limits: Limits = {}, now = () => Date.now()) {
  return openInstalled({ dir, now, log, limits });
}

kept('the next build takes the same files and returns them', async () => {
  await using dir = tempDirectory();
  await using first = project();
  await using second = directory(LOCKED);
  symlinkSync('../zod/index.js', join(first.path, 'node_modules', 'zod', 'link.js'));
  const installed = await open(dir.path);
  const one = { projectId: 'p', key: KEY };
  assert.is(await installed.take(one, second.path), undefined, 'nothing is kept yet');
  assert.is(existsSync(join(second.path, 'node_modules')), false);
  await installed.keep(one, first.path, 10);
  assert.is(existsSync(join(first.path, 'node_modules')), false, 'it was moved');
  assert.is(await installed.take(one, second.path), one);
  const file = join(second.path, 'node_modules', 'zod', 'index.js');
  assert.is(readFileSync(file, 'utf8'), 'export const z = 1;');
  assert.is(lstatSync(join(second.path, 'node_modules', 'zod', 'link.js')).isSymbolicLink(), true);
  assert.is(await installed.take(one, first.path), undefined, 'one build has it at a time');
  await installed.keep(one, second.path, 10);
  assert.is(await installed.take(one, first.path), one);
});

kept('an install of one project is not used by another', async () => {
  await using dir = tempDirectory();
  await using one = project();
  await using other = directory(LOCKED);
  const installed = await open(dir.path);
  await installed.keep({ projectId: 'p', key: KEY }, one.path, 10);
  assert.is(await installed.take({ projectId: 'q', key: KEY }, other.path), undefined);
});

kept('a link in place of node_modules is neither cached nor followed', async () => {
  await using dir = tempDirectory();
  await using machine = directory({ 'canary/secret': 'of the machine' });
  await using one = directory(LOCKED);
  symlinkSync(join(machine.path, 'canary'), join(one.path, 'node_modules'));
  const installed = await open(dir.path);
  const its = { projectId: 'p', key: KEY };
  await installed.keep(its, one.path, 10);
  await using next = directory(LOCKED);
  assert.is(await installed.take(its, next.path), undefined);
  assert.is(readFileSync(join(machine.path, 'canary', 'secret'), 'utf8'), 'of the machine');
  assert.equal(readdirSync(join(dir.path, 'aside')), []);
});

kept('what a dead runner left aside is removed after an hour', async () => {
  await using dir = tempDirectory();
  const asides = join(dir.path, 'aside');
  const hourAgo = Date.now() - 3_600_000;
  const young = `${hourAgo + 60_000}-x`;
  for (const name of [`${hourAgo - 60_000}-x`, young, 'of an earlier release']) {
    mkdirSync(join(asides, name, 'node_modules'), { recursive: true });
  }
  await open(dir.path);
  assert.equal(readdirSync(asides), [young], 'that of a runner that is being replaced');
});

kept('a link in place of a cached install is neither used nor followed', async () => {
  await using dir = tempDirectory();
  await using machine = directory({ 'canary/secret': 'of the machine' });
  const installed = await open(dir.path);
  mkdirSync(join(dir.path, 'p'));
  symlinkSync(join(machine.path, 'canary'), join(dir.path, 'p', `${KEY}-10`));
  await using next = directory(LOCKED);
  assert.is(await installed.take({ projectId: 'p', key: KEY }, next.path), undefined);
  assert.equal(readdirSync(next.path).sort(), Object.keys(LOCKED).sort());
  assert.is(readFileSync(join(machine.path, 'canary', 'secret'), 'utf8'), 'of the machine');
});

for (const [what, files] of [
  ['another lock file', { 'package-lock.json': '{"lockfileVersion": 3}' }],
  ['another package.json', { 'package.json': '{"dependencies": {"zod": "3"}}' }],
  ['a lock file of pnpm beside it', { 'pnpm-lock.yaml': 'lockfileVersion: 9' }],
] as const) {
  kept(`${what} gives another key`, async () => {
    await using one = project();
    await using other = project(files);
    const keys = [await installKey(one.path), await installKey(other.path)];
    assert.is(new Set(keys).size, 2);
    assert.not(keys.includes(undefined));
    await using same = directory(LOCKED);
    assert.is(await installKey(same.path), keys[0], 'its files are the same');
  });
}

for (const [what, files] of [
  ['a folder', { 'package.json': '{"dependencies": {"zod": "file:./zod"}}' }],
  ['a tarball', { 'package-lock.json': '{"packages": {"a": {"resolved": "file:zod.tgz"}}}' }],
  ['a link', { 'package-lock.json': '{"packages": {"a": {"resolved": "zod", "link": true}}}' }],
  ['a workspace', { 'package.json': '{"workspaces": ["zod"]}' }],
  ['a link of pnpm', { 'pnpm-lock.yaml': 'version: link:zod' }],
] as const) {
  kept(`an install with ${what} of the project's own is not cached`, async () => {
    await using one = project(files);
    assert.is(await installKey(one.path), undefined);
  });
}

kept('a folder named like a lock file has no key, and a stray file is kept', async () => {
  await using dir = tempDirectory();
  await using one = directory({ 'package.json': '{}', 'pnpm-lock.yaml/a': '' });
  writeFileSync(join(dir.path, 'stray'), '');
  await open(dir.path);
  assert.is(await installKey(one.path), undefined);
  assert.ok(existsSync(join(dir.path, 'stray')));
});

kept('without a lock file there is no key', async () => {
  await using one = directory({ 'package.json': '{}' });
  assert.is(await installKey(one.path), undefined);
});

/** The keys that still have an entry. */
async function left(dir: string, wanted: readonly (readonly [string, string])[]) {
  const installed = await open(dir);
  const found = wanted.map(async ([projectId, key]) => {
    await using empty = tempDirectory();
    return (await installed.take({ projectId, key }, empty.path)) !== undefined;
  });
  return Promise.all(found);
}

kept('a project keeps its most recently used installs, up to its limit', async () => {
  await using dir = tempDirectory();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => name.repeat(64)) as [string, string, string];
  let time = Date.now();
  const installed = await open(dir.path, { ofProjectMax: 2 }, () => time);
  const keep = async (projectId: string, key: string): Promise<void> => {
    await using one = project();
    await installed.keep({ projectId, key }, one.path, 10);
  };
  for (const key of [a, b]) {
    time += 1_000;
    await keep('p', key);
  }
  time += 1_000;
  await using again = tempDirectory();
  const its = { projectId: 'p', key: a };
  assert.is(await installed.take(its, again.path), its);
  await installed.keep(its, again.path, 10);
  time += 1_000;
  await keep('p', c);
  await keep('q', b);
  const found = await left(dir.path, [
    ['p', a],
    ['p', b],
    ['p', c],
    ['q', b],
  ]);
  assert.equal(found, [true, false, true, true]);
});

kept('the cache has a limit for all projects and one for a single install', async () => {
  await using dir = tempDirectory();
  let time = Date.now();
  const limits = { totalMaxBytes: 1_000, entryMaxBytes: 800 };
  const installed = await open(dir.path, limits, () => time);
  for (const [projectId, bytes] of [
    ['p', 400],
    ['q', 400],
    ['r', 400],
    ['s', 900],
  ] as const) {
    time += 1_000;
    await using one = project();
    await installed.keep({ projectId, key: KEY }, one.path, bytes);
  }
  assert.equal(readdirSync(dir.path).sort(), ['aside', 'q', 'r'], 'no empty folder stays');
  assert.equal(readdirSync(join(dir.path, 'aside')), []);
  const wanted = ['p', 'q', 'r', 's'].map((name) => [name, KEY] as const);
  assert.equal(await left(dir.path, wanted), [false, true, true, false]);
});

kept('an install that is unused for a week is removed at the next start', async () => {
  await using dir = tempDirectory();
  await using one = project();
  const before = await open(dir.path, {}, () => Date.now() - 8 * DAY_MS);
  await before.keep({ projectId: 'p', key: KEY }, one.path, 10);
  assert.equal(await left(dir.path, [['p', KEY]]), [false]);
});

kept('an install that cannot be cached or used again fails no build', async () => {
  await using dir = tempDirectory();
  await using one = project();
  await using bare = directory(LOCKED);
  const its = { projectId: 'p', key: KEY };
  const installed = await open(dir.path);
  await installed.keep(its, bare.path, 10);
  assert.is(await installed.take(its, bare.path), undefined, 'it had no node_modules');
  await installed.keep(its, one.path, 10);
  mkdirSync(join(one.path, 'node_modules', 'other'), { recursive: true });
  assert.is(await installed.take(its, one.path), undefined, 'node_modules is there already');
  assert.is(existsSync(join(one.path, 'node_modules')), false, 'npm begins from nothing');
  assert.is(await installed.take(its, one.path), its);
  rmSync(dir.path, { recursive: true });
});

kept.run();
