/** Every attack that takes time and memory, or floods, on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/bwrap-load');
addAttacks(tests, 'bwrap', true);
tests.run();
