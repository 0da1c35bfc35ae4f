/** Which zips are extensions, and the error messages of the others. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  checkExtension,
  EXTENSION_LIMITS,
  ExtensionError,
  extensionEntries,
} from '../../../proto/archives/extension-zip.ts';
import { errorOf } from '../../support/fault.ts';
import { manifest, patched, zipOf } from '../../support/runner/zips.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/archives/extension-zip');
const OK = { 'manifest.json': manifest() };

async function checked(zip: Buffer, limits = EXTENSION_LIMITS): Promise<void> {
  await using dir = tempDirectory();
  const path = join(dir.path, 'zip');
  writeFileSync(path, zip);
  await checkExtension(path, { limits });
}

async function problemOf(zip: Buffer, limits = EXTENSION_LIMITS): Promise<string> {
  const error = await errorOf(checked(zip, limits));
  assert.instance(error, ExtensionError);
  return (error as ExtensionError).message;
}

const GOOD: [string, Promise<Buffer>][] = [
  ['a manifest alone', zipOf(OK)],
  [
    'directories, files below them, names of other scripts',
    zipOf({ 'a/': '', 'a/ü.js': '1', ...OK }),
  ],
  [
    'comments and a byte order mark',
    zipOf({
      'manifest.json': `\uFEFF// one\n/* two */ ${manifest({ description: 'a//b/*c' })} // three`,
    }),
  ],
  ['what macOS adds', zipOf({ '__MACOSX/._manifest.json': 'x', '.DS_Store': 'y', ...OK })],
];

for (const [name, zip] of GOOD) {
  test(`accepted: ${name}`, async () => {
    await checked(await zip);
  });
}

const SMALL = { ...EXTENSION_LIMITS, unpackedMaxBytes: 1 << 20, entriesMax: 3 };
const BAD: [string, Promise<Buffer>, RegExp, typeof EXTENSION_LIMITS?][] = [
  ['nothing', Promise.resolve(Buffer.alloc(0)), /^it is not a valid zip: /],
  ['what is no zip', Promise.resolve(Buffer.from('hello')), /^it is not a valid zip: .*[^.]$/],
  ['an empty zip', zipOf({}), /^manifest.json must be at the root of the zip$/],
  [
    'a folder that was zipped',
    zipOf({ 'mine/manifest.json': manifest() }),
    /; it is at mine\/manif/,
  ],
  ['no JSON', zipOf({ 'manifest.json': '{' }), /^manifest.json is not valid JSON$/],
  ['an open comment', zipOf({ 'manifest.json': '/*'.repeat(50_000) }), /is not valid JSON$/],
  ['an open text', zipOf({ 'manifest.json': `"${'\\"'.repeat(500_000)}\\` }), /is not valid JSON$/],
  ['a list', zipOf({ 'manifest.json': '[]' }), /must be a JSON object$/],
  ['an old format', zipOf({ 'manifest.json': manifest({ manifest_version: 2 }) }), /must be 3/],
  ['no name', zipOf({ 'manifest.json': manifest({ name: '' }) }), /must have a name$/],
  ['a version of words', zipOf({ 'manifest.json': manifest({ version: 'one' }) }), /^version in/],
  ...['permissions', 'optional_permissions'].flatMap((field) =>
    ['proxy', 'nativeMessaging'].map((name): (typeof BAD)[number] => [
      `${field}: ${name}`,
      zipOf({ 'manifest.json': manifest({ [field]: ['storage', name] }) }),
      new RegExp(`^${field} in manifest.json must not have ${name}: `),
    ]),
  ),
  [
    'a manifest without end',
    zipOf({ 'manifest.json': ' '.repeat((1 << 20) + 1) }),
    /at most 1048576/,
  ],
  [
    'a link',
    zipOf({ ...OK, 'l.js': { text: '/etc/passwd', mode: 0o120777 } }),
    /^l.js is a link or/,
  ],
  [
    'a device',
    zipOf({ ...OK, 'd.js': { text: '', mode: 0o020666 } }),
    /^d.js is a link or a special/,
  ],
  [
    'a way out',
    zipOf({ ...OK, 'aa/b.js': '' }).then((z) => patched(z, 'aa/b', '../b')),
    /relative/,
  ],
  [
    'a way out by backslash',
    zipOf({ ...OK, 'aa/b.js': '' }).then((z) => patched(z, 'aa/b', '..\\b')),
    /relative/,
  ],
  [
    'an absolute name',
    zipOf({ ...OK, 'aa/b.js': '' }).then((z) => patched(z, 'aa/b', '/a/b')),
    /absolute/,
  ],
  [
    'a name of a control',
    zipOf({ ...OK, 'a.js': '' }).then((z) => patched(z, 'a.js', '\u0007.js')),
    /^\?\.js: /,
  ],
  [
    'a name twice',
    zipOf({ ...OK, 'a.js': '', 'b.js': '' }).then((z) => patched(z, 'b.js', 'a.js')),
    /a name twice/,
  ],
  [
    'a file as directory',
    zipOf({ ...OK, a: '', 'b/c': '' }).then((z) => patched(z, 'b/c', 'a/c')),
    /a file where/,
  ],
  ['a bomb', zipOf({ ...OK, 'b.bin': Buffer.alloc((1 << 20) + 1) }), /at most 1 MiB$/, SMALL],
  [
    'too many files',
    zipOf({ ...OK, a: '', b: '', c: '' }),
    /^it must hold at most 3 files$/,
    SMALL,
  ],
  ['too many directories', zipOf({ ...OK, 'a/b/c/d': '' }), /too many entries$/, SMALL],
  ['a bomb that lies', lying(), /valid zip|damaged/],
  ['damaged bytes', damaged(), /valid zip|damaged/],
  ['a cut zip', zipOf(OK).then((zip) => zip.subarray(0, zip.length - 5)), /^it is not a valid zip/],
];

for (const [name, zip, says, limits] of BAD) {
  test(`refused: ${name}`, async () => {
    const said = await problemOf(await zip, limits);
    assert.match(said, says);
  });
}

test('an entry yields its bytes, and no path leads out of the extension', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'zip');
  writeFileSync(path, await zipOf({ ...OK, 'a/b.txt': 'hello' }));
  const found: string[] = [];
  for await (const { kind, path: inside, size, body } of extensionEntries(path)) {
    const parts: Buffer[] = [];
    for await (const part of body()) parts.push(part);
    found.push(`${kind} ${inside} ${size} ${Buffer.concat(parts)}`);
  }
  const text = manifest();
  assert.equal(found, [`file manifest.json ${text.length} ${text}`, 'file a/b.txt 5 hello']);
});

test.run();

/** Its directory declares 10 bytes for a larger entry. */
async function lying(): Promise<Buffer> {
  const zip = await zipOf({ ...OK, 'b.bin': Buffer.alloc(100_000) });
  const entry = zip.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'));
  zip.writeUInt32LE(10, entry + 24);
  return zip;
}

/** One bit of what was packed is another. */
async function damaged(): Promise<Buffer> {
  const zip = await zipOf({ ...OK, 'b.txt': 'a text that is stored' });
  const entry = zip.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'));
  zip.writeUInt32LE(7, entry + 16);
  return zip;
}
