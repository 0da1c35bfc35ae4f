/** Bytes for people. */

const UNITS = ['kB', 'MB', 'GB', 'TB'] as const;
const STEP = 1_000;

/** `999 B`, `1.2 kB`, `26 MB`: two digits, or all before the point. */
export function sizeText(bytes: number): string {
  if (bytes < STEP) return `${bytes} B`;
  let [value, unit] = [bytes, 'B'];
  for (const next of UNITS) {
    if (Math.round(value) < STEP) break;
    [value, unit] = [value / STEP, next];
  }
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${unit}`;
}
