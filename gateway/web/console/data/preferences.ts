/** What the browser remembers: no key, no id, no text of a page. */
import { effect } from '@preact/signals';
import { isUtc } from './clock.ts';

const ZONE = 'tabern-console-zone';

/** Reads the preferences and keeps them. A browser may refuse storage. */
export function readPreferences(): void {
  try {
    isUtc.value = localStorage.getItem(ZONE) === 'utc';
  } catch {
    return; // the choice then lasts until the page is closed
  }
  effect(() => localStorage.setItem(ZONE, isUtc.value ? 'utc' : 'local'));
}
