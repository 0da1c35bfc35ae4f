/** Every attack on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './suite.ts';

const tests = suite('runner/attacks/bwrap');
addAttacks(tests, 'bwrap');
tests.run();
