/** Every attack through what its bundler reads, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { sources } from './table/build-sources.ts';

const tests = suite('runner/attacks/build-sources');
for (const sandbox of ['bwrap', 'landlock'] as const) addBuildAttacks(tests, sandbox, sources);
tests.run();
