/** Text tables for terminals. */

/** Rows under their column names; control characters in cells are removed. */
export function columns(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const all = [head, ...rows].map((row) => row.map((cell) => plainCell(cell)));
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all
    .map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Without control characters; a dash for an empty cell. */
function plainCell(value: unknown): string {
  const text = String(value ?? '').replace(/\p{Cc}/gu, '\u{fffd}');
  return text === '' ? '-' : text;
}
