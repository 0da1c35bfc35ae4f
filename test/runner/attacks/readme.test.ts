/** README says of the jail what the tests of the attacks say, and nothing else. */
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { README, withTable } from './lab/readme.ts';
import { KINDS } from './table/all.ts';

const tests = suite('runner/attacks/readme');

tests('the table of README is the one that the attacks give', () => {
  const readme = readFileSync(README, 'utf8');
  const isSame = readme === withTable(readme);
  assert.ok(isSame, 'run `node test/runner/attacks/lab/readme.ts`, and read what it changed');
});

tests('a README without a place for it is refused', () => {
  assert.throws(() => withTable('# tabern'), /has no/);
});

tests('no attack has the name of another', () => {
  const names = KINDS.flatMap(({ attacks }) => attacks.map(({ name }) => name));
  assert.is(new Set(names).size, names.length);
  assert.ok(names.length >= 54);
});

tests.run();
