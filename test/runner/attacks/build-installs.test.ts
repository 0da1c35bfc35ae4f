/** Every attack through the installer, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { installs } from './table/build-installs.ts';

const tests = suite('runner/attacks/build-installs');
addBuildAttacks(tests, installs);
tests.run();
