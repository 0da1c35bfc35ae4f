/** The covering set of `npm test` omits no row, place or expected result. */
import { suite } from 'uvu';
import { equal, ok } from 'uvu/assert';
import { endingIn, PLACES } from './runner/attacks/lab/attack.ts';
import { attacksIn } from './runner/attacks/lab/suite.ts';
import { KINDS } from './runner/attacks/table/all.ts';
import { rowsIn } from './support/whole.ts';

const whole = suite('whole');

/** A row's keys in two places; a place without one does not run it. */
type Row = { a?: string; b?: string };
const ROWS: Row[] = [
  { a: 'same', b: 'same' },
  { a: 'same', b: 'same' },
  { a: 'one', b: 'other' },
  { a: 'alone' },
  { b: 'alone' },
];
const matrix = {
  rows: ROWS,
  places: ['a', 'b'] as const,
  keyOf: (row: Row, place: 'a' | 'b') => row[place],
};
const indexes = (rows: Row[]) => rows.map((row) => ROWS.indexOf(row));

whole('a row with one expected result runs in one place, a row with two in both', () => {
  equal(indexes(rowsIn(matrix, 'a', false)), [0, 2, 3]);
  equal(indexes(rowsIn(matrix, 'b', false)), [1, 2, 4]);
});

whole('a whole run has every row in every place that has an expected result', () => {
  equal(indexes(rowsIn(matrix, 'a', true)), [0, 1, 2, 3]);
  equal(indexes(rowsIn(matrix, 'b', true)), [0, 1, 2, 4]);
});

whole(
  'every attack that is contained somewhere runs, each sandbox has some, each ending one',
  () => {
    const run = new Set(
      PLACES.flatMap((place) =>
        KINDS.flatMap(({ attacks }) =>
          attacksIn(attacks, place).map((attack) => endingIn(attack, place)),
        ),
      ),
    );
    for (const { title, attacks } of KINDS) {
      for (const attack of attacks) {
        for (const place of PLACES) {
          const ending = endingIn(attack, place);
          if (ending.type === 'open' || ending.type === 'unrun') continue;
          ok(run.has(ending), `${title}: ${attack.name}: ${ending.type} in ${place}`);
        }
      }
    }
    for (const place of PLACES) {
      ok(
        KINDS.some(({ attacks }) => attacksIn(attacks, place).length > 0),
        place,
      );
    }
  },
);

whole.run();
