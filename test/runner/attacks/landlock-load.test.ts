/** Every attack that takes time and memory, or floods, on the Landlock launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/landlock-load');
addAttacks(tests, 'landlock', true);
tests.run();
