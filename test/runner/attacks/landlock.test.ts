/** Every attack on foreign resources, on the Landlock launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/landlock');
addAttacks(tests, 'landlock', false);
tests.run();
