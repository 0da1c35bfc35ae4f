/** Finds variables that look like settings but are not in the table, such as TABERN_PROT. */
import type { Env } from '../env.ts';
import { SETTINGS } from './table.ts';

/** Not in the table, as no operator sets it: for fault tests (core/config.ts). */
const FAULTS = 'TABERN_CRASH_AT';
/** Share of the characters that may differ. Ours: `prot` and `port` differ in two of four. */
const NEAR = 0.4;
const PREFIX = 'TABERN_';
const NAMES = SETTINGS.map(({ name }) => `${PREFIX}${name}`);
const KNOWN = [...NAMES, ...NAMES.map((name) => `${name}_FILE`), FAULTS];
const SHORT = KNOWN.map((name) => name.slice(PREFIX.length));

/** One warning each, without the value, which may be a secret. */
export function unknownVariables(env: Env): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !KNOWN.includes(name))
    .map((name) => {
      // without the prefix, which all have
      const near = nearest(name.slice(PREFIX.length), SHORT);
      const hint = near === undefined ? '' : `; did you mean ${PREFIX}${near}?`;
      return `${name} is not a setting${hint}`;
    });
}

/** The word that needs the fewest changes of one character; undefined when none is near. */
export function nearest(to: string, words: readonly string[]): string | undefined {
  const ranked = words
    .map((word) => ({ word, changes: changesBetween(word, to) }))
    .filter(({ word, changes }) => {
      return changes <= Math.round(Math.max(word.length, to.length) * NEAR);
    });
  return ranked.sort((one, other) => one.changes - other.changes)[0]?.word;
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
