/** The pages on client libraries and agents, each tool unmodified and as its users start it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPlace, runPages } from '../../support/examples/pages.ts';
import { RECIPES } from '../../support/examples/recipes.ts';

const test = suite('journey/install/recipes');

for (const [page, steps] of Object.entries(RECIPES)) {
  test(`each block of ${page} runs`, async () => {
    await using place = await openPlace();
    assert.equal(await runPages({ [page]: steps }, place), []);
  });
}

test.run();
