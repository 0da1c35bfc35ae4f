/** Every attack on foreign resources, on the bubblewrap launcher. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/bwrap');
addAttacks(tests, 'bwrap', false);
tests.run();
