/** A list in pages by cursor, which changes arrive in. Pure. */

export type Row = { id: string; createdAt: string };
export type Page<T> = { rows: T[]; nextCursor: string | undefined };

/**
 * The rows after the newest page was read again. Rows of the old list that are as new as those of
 * the page and are not in it no longer match the filter. Without `nextCursor` the page is the
 * whole list.
 */
export function refreshed<T extends Row>(old: readonly T[], page: Page<T>): T[] {
  const oldest = page.rows.at(-1);
  if (page.nextCursor === undefined || oldest === undefined) return page.rows;
  const ids = new Set(page.rows.map(({ id }) => id));
  const older = old.filter((row) => isOlder(row, oldest) && !ids.has(row.id));
  return [...page.rows, ...older];
}

/** The rows of the page that are newer than all of the old list: those that wait while scrolled. */
export function newerThan<T extends Row>(old: readonly T[], page: readonly T[]): T[] {
  const newest = old[0];
  return newest === undefined ? [...page] : page.filter((row) => isOlder(newest, row));
}

/** The rows with the next page behind them, without doubles. */
export function appended<T extends Row>(old: readonly T[], page: readonly T[]): T[] {
  const ids = new Set(old.map(({ id }) => id));
  return [...old, ...page.filter(({ id }) => !ids.has(id))];
}

/** Lists are sorted by creation, then by id. */
function isOlder(row: Row, than: Row): boolean {
  const [a, b] = [Date.parse(row.createdAt), Date.parse(than.createdAt)];
  return a === b ? row.id < than.id : a < b;
}
