/** What the browser remembers: no key, no id, no text of a page. */
import { effect, type Signal, signal } from '@preact/signals';
import { isUtc } from './clock.ts';

const ZONE = 'tabern-console-zone';
const COLUMNS = 'tabern-console-columns-';
/** Ours: a list has fewer; the storage is shared with all that this origin serves. */
const NAMES_MAX = 40;

/** Reads the preferences and keeps them. A browser may refuse storage. */
export function readPreferences(): void {
  try {
    isUtc.value = localStorage.getItem(ZONE) === 'utc';
  } catch {
    return; // the choice then lasts until the page is closed
  }
  effect(() => localStorage.setItem(ZONE, isUtc.value ? 'utc' : 'local'));
}

const chosen = new Map<string, Signal<readonly string[]>>();

/** The columns of a list that are hidden: those that this browser remembers, or `first`. */
export function hiddenColumns(list: string, first: readonly string[]): Signal<readonly string[]> {
  const known = chosen.get(list) ?? signal(read(list) ?? first);
  chosen.set(list, known);
  return known;
}

/** Hides the columns from now on. */
export function hideColumns(list: string, names: readonly string[]): void {
  const known = chosen.get(list);
  if (known) known.value = names;
  try {
    localStorage.setItem(COLUMNS + list, JSON.stringify(names));
  } catch {
    // as above
  }
}

/** Undefined when there is nothing, or nothing of ours. */
function read(list: string): readonly string[] | undefined {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(COLUMNS + list) ?? 'null');
    const isOurs = Array.isArray(names) && names.every((name) => typeof name === 'string');
    return isOurs ? names.slice(0, NAMES_MAX) : undefined;
  } catch {
    return undefined;
  }
}
