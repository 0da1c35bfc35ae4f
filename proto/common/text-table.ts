/** Text tables on stdout. */
import { plain, type Style, styled } from '../terminal/text.ts';

/** The column whose words are styled. Names and other cells are text of tenants. */
const STATUS = 'STATUS';
/** Words that a reader looks for in a long table. A map: a tenant's word may be `constructor`. */
const STYLES: ReadonlyMap<string, Style> = new Map([
  ['COMPLETED', 'green'],
  ['ENABLED', 'green'],
  ['PENDING', 'yellow'],
  ['RUNNING', 'cyan'],
  ['FAILED', 'red'],
  ['ERROR', 'red'],
  ['TIMED_OUT', 'red'],
  ['EXHAUSTED', 'red'],
  ['DISABLED', 'red'],
]);

/** Rows under their column names; each row is one line. */
export function columns(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const all = [head, ...rows].map((row) => row.map((cell) => plainCell(cell)));
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all
    .map((row, number) =>
      row
        .map((cell, at) => {
          // nothing follows the last cell, so it needs no blanks
          const padded = at === head.length - 1 ? cell : cell.padEnd(widths[at] ?? 0);
          const style = number === 0 ? 'bold' : head[at] === STATUS ? STYLES.get(cell) : undefined;
          return style === undefined ? padded : styled(style, padded, process.stdout);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Of one line; a dash for an empty cell. */
function plainCell(value: unknown): string {
  const text = plain(value ?? '').replaceAll('\t', ' ');
  return text === '' ? '-' : text;
}
