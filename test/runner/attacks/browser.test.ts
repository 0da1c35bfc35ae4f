/** The attacks that a handler makes through its browser: a real Chrome, jailed as sessions' are. */
import { suite } from 'uvu';
import { openLab } from '../chrome/lab.ts';
import { runAll } from './suite.ts';
import { browser } from './table/browser.ts';

const tests = suite('runner/attacks/browser');

for (const sandbox of ['bwrap', 'landlock'] as const) {
  tests(`${sandbox}: ${browser.length} attacks through its browser are contained`, async () => {
    await using lab = await openLab({ allow: [], sandbox });
    await runAll(sandbox, browser, lab.relay);
  });
}

tests.run();
