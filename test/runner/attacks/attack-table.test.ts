/** The guide's table of attacks is what the tests of the attacks expect, and nothing else. */
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PAGE, withTable } from './lab/attack-table.ts';
import { KINDS } from './table/all.ts';

const tests = suite('runner/attacks/attack-table');

tests('the table of the guide is generated from the attacks', () => {
  const page = readFileSync(PAGE, 'utf8');
  assert.ok(page === withTable(page), 'run `npm run reference`, and read what it changed');
});

tests('a page without marks for it is refused', () => {
  assert.throws(() => withTable('# Security'), /has no/);
});

tests('no attack has the name of another', () => {
  const names = KINDS.flatMap(({ attacks }) => attacks.map(({ name }) => name));
  assert.is(new Set(names).size, names.length);
  assert.ok(names.length >= 54);
});

tests.run();
