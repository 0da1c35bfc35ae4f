/** Files of the driver's machine, and large ones. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { reported } from '../thing.ts';
import type { Place, PlaywrightThing } from './place.ts';

const MIB = 1 << 20;
const READ = `Promise.all([...document.querySelector('input').files].map(async (file) => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  return [file.name, file.size, bytes[0], bytes.at(-1)];
}))`;

export const UPLOADS: readonly PlaywrightThing[] = [
  {
    name: 'uploads of 5 MiB, from memory and from a path',
    async run({ page, directory }) {
      const buffer = Buffer.alloc(5 * MIB, 1).fill(2, 4 * MIB);
      const path = join(directory, 'large');
      await writeFile(path, buffer);
      await page.setContent('<input type=file>');
      await page.setInputFiles('input', { name: 'made', mimeType: 'text/plain', buffer });
      const made = await page.evaluate(READ);
      await page.setInputFiles('input', path);
      return [made, await page.evaluate(READ)];
    },
  },
  {
    name: 'an upload of 13 MiB from memory',
    run: (place) => {
      const buffer = Buffer.alloc(13 * MIB, 1);
      return given(place, { name: 'made', mimeType: 'text/plain', buffer });
    },
  },
  {
    name: 'an upload of 51 MiB from a path',
    async run(place) {
      const path = join(place.directory, 'larger');
      await using file = await open(path, 'w');
      await file.truncate(51 * MIB);
      return await given(place, path);
    },
  },
  {
    name: 'an upload of a directory',
    async run({ page, directory }) {
      await writeFile(join(directory, 'one.txt'), 'first');
      await page.setContent('<input type=file webkitdirectory>');
      const giving = page.setInputFiles('input', directory, { timeout: 3_000 });
      const failure = await giving.then(() => 'given', reported);
      return [failure, await page.evaluate(`document.querySelector('input').files.length`)];
    },
  },
];

/** Over a separate connection, which the upload may end. */
async function given(
  { another }: Place,
  files: Parameters<Page['setInputFiles']>[1],
): Promise<unknown> {
  const browser = await another();
  const page = await browser.newPage();
  await page.setContent('<input type=file>');
  const failure = await page.setInputFiles('input', files).then(() => undefined, reported);
  const facts = failure ?? (await page.evaluate(READ));
  await browser.close();
  return facts;
}
