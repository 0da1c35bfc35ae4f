/**
 * The size of a run. `npm test` runs a covering set of each matrix: each row, each place and each
 * expected answer at least once. `npm run test:all` (`--all`) runs every row in every place.
 */
export const IS_WHOLE = process.env['TABERN_TEST_ALL'] === '1';

/** `whole` in a whole run, else `few`. */
export function sized<T>(few: T, whole: T): T {
  return IS_WHOLE ? whole : few;
}

/**
 * The rows to run in `place`: in a whole run every row that has a key there; else each row once for
 * each of its keys, in turn over the places, so that every place gets its part.
 */
export function rowsIn<Row, Place>(
  { rows, places, keyOf }: Matrix<Row, Place>,
  place: Place,
  isWhole = IS_WHOLE,
): Row[] {
  return rows.filter((row, index) => {
    const key = keyOf(row, place);
    if (key === undefined) return false;
    const same = places.filter((one) => keyOf(row, one) === key);
    return isWhole || same[index % same.length] === place;
  });
}

export type Matrix<Row, Place> = {
  rows: readonly Row[];
  places: readonly Place[];
  /** What the row expects there; undefined where it is not run. */
  keyOf(row: Row, place: Place): unknown;
};
