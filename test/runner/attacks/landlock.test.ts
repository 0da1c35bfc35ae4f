/** Every attack that reaches for what is not its own, on the Landlock launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/landlock');
addAttacks(tests, 'landlock', false);
tests.run();
