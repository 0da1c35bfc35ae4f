/** Variables that look like settings and are none, such as TABERN_PROT. */
import type { Env } from '../env.ts';
import { SETTINGS } from './table.ts';

/** Not in the table, as no operator sets it: for fault tests (core/config.ts). */
const FAULTS = 'TABERN_CRASH_AT';
const NAMES = SETTINGS.map(({ name }) => `TABERN_${name}`);
const KNOWN = [...NAMES, ...NAMES.map((name) => `${name}_FILE`), FAULTS];

/** A warning for each; names alone, as a value may be a secret. */
export function unknownVariables(env: Env): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('TABERN_') && !KNOWN.includes(name))
    .map((name) => `${name} is not a setting; did you mean ${nearest(name, KNOWN)}?`);
}

/** The word that takes the fewest changes of one character; `words` has at least one. */
export function nearest(to: string, words: readonly string[]): string {
  const ranked = words.map((word) => ({ word, changes: changesBetween(word, to) }));
  return ranked.reduce((best, one) => (one.changes < best.changes ? one : best)).word;
}

/** Levenshtein's distance, a row at a time. */
function changesBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [column, wanted] of [...other].entries()) {
      const [diagonal = 0, above = 0] = row.slice(column, column + 2);
      const changed = diagonal + Number(letter !== wanted);
      next.push(Math.min(changed, above + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
