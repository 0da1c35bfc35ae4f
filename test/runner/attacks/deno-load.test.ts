/** Every attack that takes time and memory, or floods, on hosts that Deno runs in bubblewrap. */
import { suite } from 'uvu';
import { addAttacks } from './lab/suite.ts';

const tests = suite('runner/attacks/deno-load');
addAttacks(tests, 'deno', true);
tests.run();
