/** Every attack that reaches for what is not its own, on hosts that Deno runs in bubblewrap. */
import { suite } from 'uvu';
import { addAttacks } from './suite.ts';

const tests = suite('runner/attacks/deno');
addAttacks(tests, 'deno', false);
tests.run();
