/**
 * Attacks on hosts that Deno runs in the bubblewrap jail. Of memory and floods Deno has no limit of
 * its own; what the jail and the supervisor do about those, bwrap.test.ts shows.
 */
import { suite } from 'uvu';
import { findRuntime } from '../../../runner/runtime.ts';
import { type Ending, fails } from './attack.ts';
import { runAll } from './suite.ts';
import { KINDS } from './table/all.ts';

const tests = suite('runner/attacks/deno');
const RUN = ['Files', 'Processes', 'Network', 'The language'];
/** Where Deno's own wall stands before ours, and says so by another error. */
const ENDINGS: Readonly<Record<string, Ending>> = {
  'follow a link that it has made itself': fails(/symlinkSync\(\) requires unscoped/),
  'load native code': fails(/Requires sys access/),
  'take over its main thread through the inspector, and read files from there': fails(
    /Requires sys access to "inspector"/,
  ),
  'end its own process through its main thread': fails(/Requires sys access to "inspector"/),
};

for (const { title, attacks } of KINDS.filter(({ title }) => RUN.includes(title))) {
  const own = attacks.map((attack) => {
    const ending = ENDINGS[attack.name];
    return ending === undefined ? attack : { ...attack, ending };
  });
  tests(`deno in bwrap: ${title.toLowerCase()}: ${own.length} attacks are contained`, async () => {
    await runAll('bwrap', own, undefined, await findRuntime('deno', {}));
  });
}

tests.run();
