/** Every attack by expensive files of a project, in both sandboxes. */
import { suite } from 'uvu';
import { addBuildAttacks } from './lab/build.ts';
import { costs } from './table/build-costs.ts';

const tests = suite('runner/attacks/build-costs');
addBuildAttacks(tests, costs);
tests.run();
