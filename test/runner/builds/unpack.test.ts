/**
 * Hostile archives: each is unpacked, and no file outside the directory may be written or
 * readable.
 */
import { lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { create, Header } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BuildFailure } from '../../../runner/builds/build-failure.ts';
import { type ArchiveLimits, unpack } from '../../../runner/builds/unpack.ts';
import { errorOf } from '../../support/fault.ts';
import { directory } from '../../support/runner/project.ts';
import { tempDirectory } from '../../support/temp.ts';

const archive = suite('runner/builds/unpack');
const BLOCK = 512;

type Entry = {
  path: string;
  type?:
    | 'File'
    | 'Directory'
    | 'SymbolicLink'
    | 'Link'
    | 'CharacterDevice'
    | 'BlockDevice'
    | 'FIFO';
  linkpath?: string;
  text?: string;
  mode?: number;
  /** Written into the header instead of the true size. */
  size?: number;
};

/** A gzip tar with exactly these headers; packers would refuse to write most of them. */
function pack(entries: Entry[]): Buffer {
  const blocks = entries.flatMap(({ text = '', type = 'File', mode = 0o644, ...entry }) => {
    const body = Buffer.from(text);
    const header = Buffer.alloc(BLOCK);
    new Header({ ...entry, type, mode, size: entry.size ?? body.length }).encode(header, 0);
    return [header, body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]));
}

/** Unpacks into `<temporary>/a/b/root`, so that files outside the root are detected and removed. */
async function unpacked(
  bytes: Buffer,
  see: (root: string, at: string) => void,
  limits?: ArchiveLimits,
): Promise<void> {
  await using temp = tempDirectory();
  const file = join(temp.path, 'archive.tgz');
  writeFileSync(file, bytes);
  const root = join(temp.path, 'a/b/root');
  await mkdir(root, { recursive: true });
  const outcome = await unpack(file, root, limits).catch((error: unknown) => error);
  assert.equal(readdirSync(join(temp.path, 'a/b')), ['root'], 'nothing beside the root');
  assert.equal(readdirSync(join(temp.path, 'a')), ['b'], 'nothing above the root');
  if (outcome instanceof Error) throw outcome;
  see(root, temp.path);
}

async function refusalOf(entries: Entry[], limits?: ArchiveLimits): Promise<string> {
  const error = await errorOf(unpacked(pack(entries), () => undefined, limits));
  assert.instance(error, BuildFailure);
  assert.is((error as BuildFailure).code, 'BUILD_ERROR');
  return (error as BuildFailure).message;
}

archive('a project that tar has packed is unpacked unchanged', async () => {
  await using source = directory({ 'src/index.ts': 'entry', 'package.json': '{}', '.env': 'x' });
  const file = join(source.path, 'out.tgz');
  await create({ gzip: true, cwd: source.path, file }, ['src', 'package.json', '.env']);
  await unpacked(readFileSync(file), (root) => {
    assert.is(readFileSync(join(root, 'src/index.ts'), 'utf8'), 'entry');
    assert.equal(readdirSync(root).sort(), ['.env', 'package.json', 'src']);
  });
});

archive('manifests, dependencies and npm settings are not unpacked', async () => {
  const paths = [
    './.browserbase/functions/manifests/old.json',
    'node_modules/a/index.js',
    'packages/one/node_modules/b/index.js',
    '.npmrc',
    'packages/one/.npmrc',
    '.git/config',
    'index.ts',
  ];
  await unpacked(pack(paths.map((path) => ({ path, text: 'x' }))), (root) => {
    assert.equal(readdirSync(root), ['index.ts']);
  });
});

archive('links inside the project are kept, links to skipped entries are removed', async () => {
  const entries: Entry[] = [
    { path: 'lib/real.ts', text: 'real' },
    { path: 'index.ts', type: 'SymbolicLink', linkpath: 'lib/../lib/real.ts' },
    { path: 'again.ts', type: 'Link', linkpath: 'lib/real.ts' },
    { path: 'gone', type: 'SymbolicLink', linkpath: 'node_modules/x' },
  ];
  await unpacked(pack(entries), (root) => {
    assert.is(readFileSync(join(root, 'index.ts'), 'utf8'), 'real');
    assert.is(readFileSync(join(root, 'again.ts'), 'utf8'), 'real');
    assert.not(readdirSync(root).includes('gone'));
  });
});

archive('setuid bits and wide permissions are removed, and the owner can read', async () => {
  const entries: Entry[] = [
    { path: 'run', text: 'x', mode: 0o6777 },
    { path: 'file', text: 'x', mode: 0o4066 },
    { path: 'folder', type: 'Directory', mode: 0o7000 },
  ];
  await unpacked(pack(entries), (root) => {
    const mode = (name: string) => statSync(join(root, name)).mode & 0o7022;
    assert.equal(['run', 'file', 'folder'].map(mode), [0, 0, 0]);
    assert.is(lstatSync(join(root, 'file')).mode & 0o600, 0o600);
  });
});

for (const [what, entries, named] of [
  ['an absolute name', [{ path: '/tmp/tabern-owned', text: 'x' }], '/tmp/tabern-owned'],
  ['a name that climbs', [{ path: '../owned', text: 'x' }], '../owned'],
  ['a name that climbs from within', [{ path: 'a/../../owned', text: 'x' }], 'a/../../owned'],
  ['an absolute link', [{ path: 'l', type: 'SymbolicLink', linkpath: '/etc' }], '"l"'],
  ['a link that climbs', [{ path: 'd/l', type: 'SymbolicLink', linkpath: '../../x' }], 'd/l'],
  ['a link to the folder above', [{ path: 'l', type: 'SymbolicLink', linkpath: '..' }], '"l"'],
  ['a hard link to a host file', [{ path: 'l', type: 'Link', linkpath: '/etc/passwd' }], '"l"'],
  [
    'a hard link that climbs',
    [{ path: 'l', type: 'Link', linkpath: '../../archive.tgz' }],
    'archive',
  ],
  ['a hard link to nothing', [{ path: 'l', type: 'Link', linkpath: 'later' }], '"l"'],
  ['a character device', [{ path: 'null', type: 'CharacterDevice' }], '"null" is a Char'],
  ['a block device', [{ path: 'disk', type: 'BlockDevice' }], '"disk" is a Block'],
  ['a pipe', [{ path: 'pipe', type: 'FIFO' }], '"pipe" is a FIFO'],
] as const) {
  archive(`${what}: refused by name, with nothing written outside`, async () => {
    const text = await refusalOf(entries.map((entry: Entry) => entry));
    assert.match(text, named);
  });
}

archive('a file behind a link is refused, in either order', async () => {
  const link: Entry = { path: 'l', type: 'SymbolicLink', linkpath: 'lib' };
  const file: Entry = { path: 'l/x', text: 'x' };
  assert.match(await refusalOf([link, file]), '"l/x" lies behind the link "l"');
  assert.match(await refusalOf([file, link]), '"l/x" lies behind the link "l"');
});

archive('links that lead outside only together are refused', async () => {
  const text = await refusalOf([
    { path: 'here', type: 'SymbolicLink', linkpath: '.' },
    { path: 'up', type: 'SymbolicLink', linkpath: 'here/..' },
  ]);
  assert.match(text, '"up" leads outside');
});

archive('a hard link through a link is refused', async () => {
  const text = await refusalOf([
    { path: 'here', type: 'SymbolicLink', linkpath: '.' },
    { path: 'up', type: 'SymbolicLink', linkpath: 'here/..' },
    { path: 'stolen', type: 'Link', linkpath: 'up/secret' },
  ]);
  assert.match(text, '"stolen"');
});

archive('the maximum number of entries is accepted, one more is refused', async () => {
  const entries = Array.from({ length: 5 }, (_, at) => ({ path: `f${at}`, text: 'x' }));
  const limits = { unpackedMaxBytes: 1_000_000, entriesMax: 5 };
  await unpacked(pack(entries), (root) => assert.is(readdirSync(root).length, 5), limits);
  assert.match(await refusalOf(entries, { ...limits, entriesMax: 4 }), 'more than 4 entries');
});

archive('a bomb is refused before it is written', async () => {
  const big = [{ path: 'big', text: 'x'.repeat(2_000_000) }];
  const limits = { unpackedMaxBytes: 1_000_000, entriesMax: 10 };
  assert.match(await refusalOf(big, limits), 'more than 1000000 bytes');
  assert.match(await refusalOf(big), 'far more than its size');
});

archive('a header that lies about its size is refused', async () => {
  assert.match(await refusalOf([{ path: 'f', text: 'x', size: 1e12 }]), /bytes|cannot be read/);
});

for (const [what, bytes] of [
  ['no archive', Buffer.from('this is not an archive')],
  ['nothing', Buffer.alloc(0)],
  ['half an archive', pack([{ path: 'f', text: 'x'.repeat(5_000) }]).subarray(0, 60)],
] as const) {
  archive(`${what}: cannot be read`, async () => {
    const error = await errorOf(unpacked(bytes, () => undefined));
    assert.instance(error, BuildFailure);
    assert.match((error as Error).message, 'cannot be read; it must be a gzip tar');
  });
}

archive.run();
