/** Every attack on foreign resources, on hosts under Deno in bubblewrap. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/deno');
addAttacks(tests, 'deno', false);
tests.run();
