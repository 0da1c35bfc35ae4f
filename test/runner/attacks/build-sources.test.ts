/** Every attack through files of the bundler, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { sources } from './table/build-sources.ts';

const tests = suite('runner/attacks/build-sources');
addBuildAttacks(tests, sources);
tests.run();
