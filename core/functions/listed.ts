/**
 * A page of invocations that passes as one message, whatever their handlers returned. Pure. Values
 * of a user grow on the wire: a number of one digit takes two bytes of JSON, and eleven as a Value.
 */
import type { InvocationRow } from '../store/types/invocations.ts';

/** Bytes on the wire for a byte of JSON, at most: `1,` becomes eleven. */
export const WIRE_PER_JSON = 5.5;
/** In bytes of JSON, of a page. Ours: on the wire it stays below 16 MiB. */
export const PAGE_MAX_BYTES = 2.5 * 1024 * 1024;

/** What a page shows of each; results go first, for GET has them. */
export type Shown = { row: InvocationRow; hasParams: boolean };

/** The rows, in their order, without what no longer fits: results first, then params. */
export function fitting(rows: readonly InvocationRow[]): Shown[] {
  let left = PAGE_MAX_BYTES;
  const takes = (json: string): boolean => {
    const bytes = Buffer.byteLength(json);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  return rows.map((row) => {
    const hasParams = takes(row.params);
    const hasResults = row.results !== null && takes(row.results);
    return { row: hasResults ? row : { ...row, results: null }, hasParams };
  });
}
