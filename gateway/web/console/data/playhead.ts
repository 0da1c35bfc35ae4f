/** The one clock of a session's page: Unix milliseconds that the picture shows, or shall show. */
import { signal } from '@preact/signals';

/** What the player shows; undefined while there is none. */
export const shown = signal<number | undefined>(undefined);
/**
 * Where a person wants to be; each request is another object. Undefined in a running session: the
 * picture is live.
 */
export const wanted = signal<{ at: number; page?: number } | undefined>(undefined);
/** Whether the timeline folds idle stretches, and whether the player skips them. */
export const isFolded = signal(true);
export const skipsIdle = signal(false);

/** Seeks: the player goes there, and so does the list. */
export function seek(at: number, page?: number): void {
  wanted.value = page === undefined ? { at } : { at, page };
}

/** Another session has another clock; a running one returns to its live picture. */
export function seekNowhere(): void {
  wanted.value = undefined;
  shown.value = undefined;
}
