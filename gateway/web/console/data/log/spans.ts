/** Pages of a session as spans of time, from its events and from its log. Pure. */
import type { SessionEvent } from '../types.ts';
import type { Range } from './fold.ts';
import type { LoggedPage } from './moments.ts';

/** Times in Unix ms. `row` is the line in which the span is drawn, so that none covers another. */
export type Span = Range & { name: string; text: string; row: number };

/** Ours: more pages at one time share the last line. */
const ROWS_MAX = 3;

/** A page that is known twice lasts from its earlier beginning to its later end. */
export function pageSpans(
  events: readonly SessionEvent[],
  logged: readonly LoggedPage[],
  { to: end }: Range,
): Span[] {
  const spans = new Map<string, Omit<Span, 'row'>>();
  for (const { type, ref, at, endedAt, text = '' } of events) {
    if (type !== 'page' || ref === undefined) continue;
    const to = endedAt === undefined ? end : Date.parse(endedAt);
    spans.set(ref, { name: ref, text, from: Date.parse(at), to });
  }
  for (const { page, from, to, url } of logged) {
    const known = spans.get(String(page));
    const name = String(page);
    if (known === undefined) spans.set(name, { name, text: url, from, to });
    else
      spans.set(name, { ...known, from: Math.min(known.from, from), to: Math.max(known.to, to) });
  }
  return inRows([...spans.values()].sort((a, b) => a.from - b.from));
}

/** Each span in the first line that is free at its beginning. */
export function inRows(spans: readonly Omit<Span, 'row'>[]): Span[] {
  const ends: number[] = [];
  return spans.map((span) => {
    const free = ends.findIndex((end) => end <= span.from);
    const row = Math.min(ROWS_MAX - 1, free < 0 ? ends.length : free);
    ends[row] = Math.max(ends[row] ?? 0, span.to);
    return { ...span, row };
  });
}
