/**
 * Pages of the console look as in the pictures of looks/, in both themes, with the same data at the
 * same time. A picture that changed on purpose is written again by looks/write-pictures.ts, and
 * looked at.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { looksOf, openLooks, openScene, pictureFile, THEMES } from './looks/scene.ts';

const journey = suite('journey/console/looks');

/** Ours: a part of the pixels. Versions of Chromium draw curves and shadows differently. */
const DIFFERENT_MAX = 0.001;
/** Of two colours, so that smoothed edges of letters count as equal. */
const THRESHOLD = 0.2;

journey('seven pages in two themes look as in their pictures', async () => {
  await using scene = await openScene();
  await using looks = await openLooks(scene.stack);
  const wrong: string[] = [];
  for (const look of await looksOf(scene.stack)) {
    for (const theme of THEMES) {
      await scene.setClock();
      const shown = await looks.picture(look, theme);
      const part = differenceOf(readFileSync(pictureFile(look, theme)), shown);
      if (part <= DIFFERENT_MAX) continue;
      const file = join(tmpdir(), `tabern-look-${look.name}-${theme}.png`);
      writeFileSync(file, shown);
      wrong.push(`${look.name}, ${theme}: ${(100 * part).toFixed(2)} % differ, see ${file}`);
    }
  }
  equal(wrong, []);
  equal(looks.faults, []);
});

journey('a picture with another word is different', () => {
  const picture = PNG.sync.read(readFileSync(pictureFile({ name: 'overview' }, 'light')));
  const same = PNG.sync.write(picture);
  is(differenceOf(same, same), 0);
  // of the size of a word: 40 x 28 pixels
  for (let y = 60; y < 88; y += 1) {
    picture.data.fill(0, 4 * (y * picture.width + 400), 4 * (y * picture.width + 440));
  }
  ok(differenceOf(same, PNG.sync.write(picture)) > DIFFERENT_MAX);
});

journey.run();

/** The part of the pixels that differ; 1 for pictures of different sizes. */
function differenceOf(before: Buffer, after: Buffer): number {
  const [a, b] = [PNG.sync.read(before), PNG.sync.read(after)];
  const { width, height } = a;
  if (b.width !== width || b.height !== height) return 1;
  const count = pixelmatch(a.data, b.data, undefined, width, height, { threshold: THRESHOLD });
  return count / (width * height);
}
