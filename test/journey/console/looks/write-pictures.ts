/**
 * `node test/journey/console/looks/write-pictures.ts`: takes the pictures that looks.test.ts
 * compares with. Look at each before it is committed.
 */
import { writeFileSync } from 'node:fs';
import { looksOf, openLooks, openScene, pictureFile, THEMES } from './scene.ts';

await using scene = await openScene();
await using looks = await openLooks(scene.stack);
for (const look of await looksOf(scene.stack)) {
  for (const theme of THEMES) {
    await scene.setClock();
    writeFileSync(pictureFile(look, theme), await looks.picture(look, theme));
  }
}
console.log(looks.faults.join('\n') || 'no fault');
