/** Every attack on the Landlock launcher. */
import { suite } from 'uvu';
import { addAttacks } from './suite.ts';

const tests = suite('runner/attacks/landlock');
addAttacks(tests, 'landlock');
tests.run();
