/** Every attack that reaches for what is not its own, on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './suite.ts';

const tests = suite('runner/attacks/bwrap');
addAttacks(tests, 'bwrap', false);
tests.run();
