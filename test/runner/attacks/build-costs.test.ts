/** Every attack through what its files cost, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { costs } from './table/build-costs.ts';

const tests = suite('runner/attacks/build-costs');
for (const sandbox of ['bwrap', 'landlock'] as const) addBuildAttacks(tests, sandbox, costs);
tests.run();
