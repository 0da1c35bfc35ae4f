/** Which rows of a long list are drawn. Pure. */

export type Window = { from: number; to: number };
export type Scroll = { top: number; height: number; rowHeight: number; count: number };

/** The rows in view and `more` on each side; `to` is exclusive. */
export function windowOf({ top, height, rowHeight, count }: Scroll, more = 12): Window {
  const first = Math.floor(Math.max(0, top) / rowHeight);
  const last = Math.ceil((Math.max(0, top) + height) / rowHeight);
  const to = Math.min(count, last + more);
  return { from: Math.max(0, Math.min(first - more, to)), to };
}

/** The scroll position that shows the row, as close to the current one as possible. */
export function scrolledTo(row: number, { top, height, rowHeight }: Scroll): number {
  const start = row * rowHeight;
  if (start < top) return start;
  return Math.max(top, start + rowHeight - height);
}

/** Whether the list is at its end, within half a row: it then follows new rows. */
export function isAtEnd({ top, height, rowHeight, count }: Scroll): boolean {
  return top + height >= count * rowHeight - rowHeight / 2;
}
