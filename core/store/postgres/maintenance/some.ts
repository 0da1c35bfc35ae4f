/**
 * Removes some rows of a table: `from` is what follows FROM in the selection of them, with a limit;
 * `returned` is a column of the removed rows.
 * By their places, which are read once: a list of keys could be compared with the whole table.
 */
export function deleteSome(table: string, from: string, returned = ''): string {
  const returning = returned && `RETURNING ${returned}`;
  return `
    DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ${table}.ctid FROM ${from})) ${returning}`;
}
