/** Publishing from the console: zip files of anyone are read within limits, and packed as tar. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import {
  entryFiles,
  projectOf,
} from '../../../gateway/web/console/pages/functions/model/archive/project.ts';
import { packed } from '../../../gateway/web/console/pages/functions/model/archive/tar.ts';
import { zipEntries } from '../../../gateway/web/console/pages/functions/model/archive/zip.ts';
import { unpack } from '../../../runner/builds/unpack.ts';
import { type Zipped, zipOf } from '../../support/clients/zip.ts';
import { tempDirectory } from '../../support/temp.ts';

const publish = suite('gateway/web/console-publish');

const blobOf = (files: readonly Zipped[]) => new Blob([zipOf(files)]);
const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

async function refusalOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'accepted';
  } catch (error) {
    return String((error as Error).message);
  }
}

publish('a zip is read: stored and deflated files, without the folder around them', async () => {
  const long = 'x'.repeat(100_000);
  const project = await projectOf(
    blobOf([
      { name: 'shop/', isStored: true },
      { name: 'shop/index.ts', text: long },
      { name: 'shop\\lib\\größe.ts', text: 'export {};', isStored: true },
      { name: '__MACOSX/shop/._index.ts', text: 'x' },
    ]),
  );
  equal(
    project.files.map(({ name }) => name),
    ['index.ts', 'lib/größe.ts'],
  );
  is(textOf(project.files[0]?.bytes), long);
  is(textOf(project.files[1]?.bytes), 'export {};');
  equal(project.entries, ['index.ts', 'lib/größe.ts']);
});

publish('dependencies, secrets and build outputs are left out, and counted', async () => {
  const names = ['node_modules/a/i.js', 'a/.env', '.env.local', 'dist/a.js', '.git/HEAD', 'a.log'];
  const project = await projectOf(
    blobOf([...names, 'index.ts', 'src/dist/kept.ts'].map((name) => ({ name, text: 'x' }))),
  );
  equal(
    project.files.map(({ name }) => name),
    ['index.ts', 'src/dist/kept.ts'],
  );
  is(project.leftOut, names.length);
});

publish('a folder with the name of secrets is left out', async () => {
  const names = ['.envs/production', 'a/.env.d/key'];
  const project = await projectOf(
    blobOf([...names, 'index.ts', 'a.env', 'logs/kept.ts'].map((name) => ({ name, text: 'x' }))),
  );
  equal(
    project.files.map(({ name }) => name),
    ['index.ts', 'a.env', 'logs/kept.ts'],
  );
});

publish('the likely entry file is the first, tests and types are none', () => {
  const names = ['z/deep/a.ts', 'b.ts', 'src/index.ts', 'types.d.ts', 'b.test.ts', 'x.json'];
  equal(entryFiles(names), ['src/index.ts', 'b.ts', 'z/deep/a.ts']);
});

const REFUSED: [problem: RegExp, files: Zipped[]][] = [
  [/not allowed/, [{ name: '../index.ts', text: 'x' }]],
  [/not allowed/, [{ name: 'a/../../index.ts', text: 'x' }]],
  [/not allowed/, [{ name: '/index.ts', text: 'x' }]],
  [/not allowed/, [{ name: 'C:/index.ts', text: 'x' }]],
  [/is a link/, [{ name: 'index.ts', text: '/etc/passwd', mode: 0o120777 }]],
  [/is encrypted/, [{ name: 'index.ts', text: 'x', flags: 1 }]],
  [/is damaged/, [{ name: 'index.ts', text: 'x', crc: 5 }]],
  [/is damaged/, [{ name: 'index.ts', text: 'x'.repeat(5_000), size: 10 }]],
  [/is damaged/, [{ name: 'index.ts', text: 'x', size: 10 }]],
  [/more than 128 MiB/, [{ name: 'index.ts', text: 'x', size: 129 << 20 }]],
  [/zip64/, [{ name: 'index.ts', text: 'x', size: 0xffffffff }]],
  [/index.ts twice/, ['index.ts', 'index.ts'].map((name) => ({ name, text: 'x' }))],
  [/no file to publish/, [{ name: 'node_modules/a.js', text: 'x' }]],
];

for (const [problem, files] of REFUSED) {
  publish(
    `a zip is refused: ${problem.source}, ${JSON.stringify(files[0])?.slice(0, 60)}`,
    async () => {
      match(await refusalOf(projectOf(blobOf(files))), problem);
    },
  );
}

publish('what is no zip, or a part of one, is refused by a sentence', async () => {
  match(await refusalOf(zipEntries(new Blob(['no zip']))), /not a zip file/);
  match(await refusalOf(zipEntries(new Blob([]))), /not a zip file/);
  const whole = zipOf([{ name: 'index.ts', text: 'x'.repeat(500) }]);
  match(await refusalOf(zipEntries(new Blob([whole.subarray(20)]))), /damaged/);
  for (let cut = 1; cut < whole.length; cut += 7) {
    ok((await refusalOf(projectOf(new Blob([whole.subarray(0, cut)])))) !== 'accepted');
  }
});

publish(
  'the archive is one that a build unpacks: long names, other letters, all bytes',
  async () => {
    await using dir = tempDirectory();
    const long = `${'folder/'.repeat(30)}größe.ts`;
    const bytes = Uint8Array.from({ length: 70_000 }, (_, n) => n % 256);
    const archive = await packed([
      { name: 'index.ts', bytes: new TextEncoder().encode('export {};') },
      { name: long, bytes },
      { name: 'empty.ts', bytes: new Uint8Array() },
    ]);
    const file = join(dir.path, 'archive.tar.gz');
    writeFileSync(file, Buffer.from(await archive.arrayBuffer()));
    const into = await mkdtemp(join(dir.path, 'into-'));
    is(await unpack(file, into), 3);
    equal((await readdir(into)).sort(), ['empty.ts', 'folder', 'index.ts']);
    ok(readFileSync(join(into, long)).equals(Buffer.from(bytes)));
    is(readFileSync(join(into, 'index.ts'), 'utf8'), 'export {};');
  },
);

publish('a project that packs to more than 25 MiB is refused', async () => {
  const bytes = new Uint8Array(26 << 20);
  for (let at = 0; at < bytes.length; at += 65_536) {
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  match(await refusalOf(packed([{ name: 'index.ts', bytes }])), /more than 25 MiB/);
});

publish.run();
