/** The executable's files: unpacked once, restored, and only where no other user can write. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, not, throws } from 'uvu/assert';
import { pack } from '../../../gateway/packaging/archive.ts';
import {
  cacheRoot,
  ensureTree,
  FUSE,
  PROGRAM,
  plainNode,
} from '../../../gateway/packaging/cache.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const FILES = { 'a.js': 'let a;\n', 'b/empty': '', 'b/run': '#!/bin/sh\n' };
const test = suite('gateway/packaging/cache');

/** A small executable and its root; `archived` counts how often the archive was read. */
function carriedIn(dir: string, files: Record<string, string> = FILES) {
  writeTree(join(dir, 'from'), files);
  const sources = Object.keys(files).map((path) => {
    return { path, from: join(dir, 'from', path), isProgram: path.endsWith('run') };
  });
  const { index, archive } = pack(sources, { version: '1.2.3', node: 'v24' });
  const self = join(dir, 'self');
  writeFileSync(self, `${'x'.repeat(9 << 20)}${FUSE}:1 and what was injected`);
  const archived = { count: 0 };
  const read = () => {
    archived.count += 1;
    return archive;
  };
  return { carried: { index, archive: read, self }, archived };
}

test('the first start unpacks, later ones use its files', async () => {
  await using dir = tempDirectory();
  const root = join(dir.path, 'root');
  const { carried, archived } = carriedIn(dir.path);
  const tree = ensureTree(root, carried);
  is(tree, join(root, `1.2.3-${carried.index.hash}`));
  for (const [path, text] of Object.entries(FILES)) {
    is(readFileSync(join(tree, path), 'utf8'), text);
  }
  is(statSync(join(tree, 'b/run')).mode & 0o777, 0o755);
  is(statSync(join(tree, 'a.js')).mode & 0o777, 0o644);
  is(statSync(root).mode & 0o777, 0o700);
  is(ensureTree(root, carried), tree);
  is(archived.count, 1);
  equal(readdirSync(root), [`1.2.3-${carried.index.hash}`]);
});

test('a program of 0 bytes, as after a power loss, is restored', async () => {
  await using dir = tempDirectory();
  const root = join(dir.path, 'root');
  const { carried } = carriedIn(dir.path);
  const program = join(ensureTree(root, carried), PROGRAM);
  truncateSync(program, 0);
  is(join(ensureTree(root, carried), PROGRAM), program);
  is(statSync(program).size, statSync(carried.self).size);
});

test('a jail may read the files also under a strict umask', async () => {
  await using dir = tempDirectory();
  const { carried } = carriedIn(dir.path);
  const before = process.umask(0o077);
  try {
    const tree = ensureTree(join(dir.path, 'root'), carried);
    is(process.umask(), 0o077, 'what runs later keeps it');
    for (const path of ['', 'b', 'b/run', 'bin', PROGRAM]) {
      is(statSync(join(tree, path)).mode & 0o777, 0o755, path);
    }
    is(statSync(join(tree, 'a.js')).mode & 0o777, 0o644);
  } finally {
    process.umask(before);
  }
});

test('the unpacked program is plain Node, without the mark', async () => {
  await using dir = tempDirectory();
  const { carried } = carriedIn(dir.path);
  const program = join(ensureTree(join(dir.path, 'root'), carried), PROGRAM);
  const text = readFileSync(program, 'latin1');
  is(text.endsWith(`${FUSE}:0 and what was injected`), true);
  is(text.length, statSync(carried.self).size);
  is(statSync(program).mode & 0o777, 0o755);

  const bare = join(dir.path, 'bare');
  writeFileSync(bare, 'no mark');
  throws(() => plainNode(bare, join(dir.path, 'plain')), /damaged/);
});

test('a short or missing file is restored', async () => {
  await using dir = tempDirectory();
  const root = join(dir.path, 'root');
  const { carried, archived } = carriedIn(dir.path);
  const tree = ensureTree(root, carried);
  truncateSync(join(tree, 'a.js'), 3);
  is(ensureTree(root, carried), tree);
  is(readFileSync(join(tree, 'a.js'), 'utf8'), FILES['a.js']);
  is(archived.count, 2);
  is(readdirSync(root).length, 1, 'nothing is left aside');
});

test('other contents have another directory', async () => {
  await using dir = tempDirectory();
  await using other = tempDirectory();
  const one = carriedIn(dir.path).carried.index.hash;
  const two = carriedIn(other.path, { ...FILES, 'a.js': 'let b;\n' }).carried.index.hash;
  not.equal(one, two);
});

test('files that other users may write, or own, are not run', async () => {
  await using dir = tempDirectory();
  const { carried } = carriedIn(dir.path);
  const open = join(dir.path, 'open');
  mkdirSync(open);
  chmodSync(open, 0o775);
  throws(() => ensureTree(open, carried), /others may write to it; .*TABERN_CACHE_DIR/);
  const file = join(dir.path, 'file');
  writeFileSync(file, '');
  throws(() => ensureTree(join(file, 'below'), carried), /cannot unpack into .*CACHE_DIR/);
  if (process.geteuid?.() !== 0) return;
  const theirs = join(dir.path, 'theirs');
  mkdirSync(theirs, { mode: 0o700 });
  execFileSync('chown', ['65534', theirs]);
  throws(() => ensureTree(theirs, carried), /belongs to another user/);
});

test('a link is followed once: its target is checked and used', async () => {
  await using dir = tempDirectory();
  const { carried } = carriedIn(dir.path);
  const [real, link] = [join(dir.path, 'real'), join(dir.path, 'link')];
  mkdirSync(real, { mode: 0o700 });
  symlinkSync(real, link);
  is(ensureTree(link, carried).startsWith(`${real}/`), true);
  chmodSync(real, 0o777);
  throws(() => ensureTree(link, carried), /others may write to it/);
});

test('the cache directory is that of the variable, the service or the user', () => {
  const all = { TABERN_CACHE_DIR: '/a', CACHE_DIRECTORY: '/b:/c', XDG_CACHE_HOME: '/x' };
  const none = () => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  // a user of systemd's DynamicUser has no home directory
  is(cacheRoot(all, none), '/a');
  is(cacheRoot({ ...all, TABERN_CACHE_DIR: '' }, none), '/b');
  is(cacheRoot({ XDG_CACHE_HOME: '/x' }, none), '/x/tabern/program');
  is(
    cacheRoot({}, () => '/home/u'),
    '/home/u/.cache/tabern/program',
  );
  throws(() => cacheRoot({}, none), /has no home directory; set TABERN_CACHE_DIR/);
});

test.run();
