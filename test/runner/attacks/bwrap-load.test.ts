/** Every attack that takes time and memory, or floods, on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './suite.ts';

const tests = suite('runner/attacks/bwrap-load');
addAttacks(tests, 'bwrap', true);
tests.run();
