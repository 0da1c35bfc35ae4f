/** Every attack through what installs its packages, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { installs } from './table/build-installs.ts';

const tests = suite('runner/attacks/build-installs');
for (const sandbox of ['bwrap', 'landlock'] as const) addBuildAttacks(tests, sandbox, installs);
tests.run();
