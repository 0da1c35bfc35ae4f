/** Every attack that reaches for what is not its own, on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/bwrap');
addAttacks(tests, 'bwrap', false);
tests.run();
