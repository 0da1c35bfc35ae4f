/** The attacks that a handler makes through its browser: a real Chrome, jailed as sessions' are. */
import { suite } from 'uvu';
import { openLab } from '../browser/lab.ts';
import { PLACES } from './lab/attack.ts';
import { attacksIn, runAll } from './lab/suite.ts';
import { browser } from './table/browser.ts';

const tests = suite('runner/attacks/browser');

for (const place of PLACES) {
  const rows = attacksIn(browser, place);
  tests(`${place}: ${rows.length} attacks through its browser are contained`, async () => {
    await using lab = await openLab({ allow: [], sandbox: place === 'deno' ? 'bwrap' : place });
    await runAll(place, rows, lab.relay);
  });
}

tests.run();
