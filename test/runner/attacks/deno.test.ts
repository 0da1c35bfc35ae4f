/** Every attack that reaches for what is not its own, on hosts that Deno runs in bubblewrap. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/deno');
addAttacks(tests, 'deno', false);
tests.run();
