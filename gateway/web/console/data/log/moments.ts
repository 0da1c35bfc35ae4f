/** What a timeline shows of a log besides its lists: pages, navigations and domains. Pure. */
import { fieldsOf, numberOf, textOf } from './json.ts';
import type { LogEntry, LogRow } from './model.ts';

/** `at` in Unix milliseconds. */
export type Navigation = { at: number; page: number; url: string };
/** From its first navigation to its last entry. */
export type LoggedPage = { page: number; from: number; to: number; url: string };
export type Moments = { navigations: Navigation[]; pages: LoggedPage[] };

/** Ours: a page can navigate without end, and a screen has not more places. */
const NAVIGATIONS_MAX = 1_000;
const PAGES_MAX = 200;
const DOMAINS_MAX = 10;

/** Navigations of main frames, and the pages that had one; oldest first. */
export function momentsOf(entries: readonly LogEntry[]): Moments {
  const navigations: Navigation[] = [];
  const pages = new Map<number, LoggedPage & { loader: unknown }>();
  for (const entry of entries) {
    const at = numberOf(entry.timestamp);
    const page = numberOf(entry.pageId);
    if (at === undefined || page === undefined) continue;
    const known = pages.get(page);
    if (known !== undefined) known.to = Math.max(known.to, at);
    if (entry.method !== 'Page.frameNavigated') continue;
    const frame = fieldsOf(fieldsOf(entry.request?.params)['frame']);
    const loader = frame['loaderId'];
    // several clients of a session each receive the event
    if (frame['parentId'] !== undefined || (known && known.loader === loader)) continue;
    if (known === undefined && pages.size >= PAGES_MAX) continue;
    const url = textOf(frame['url']);
    pages.set(page, { page, from: known?.from ?? at, to: at, url, loader });
    if (navigations.length < NAVIGATIONS_MAX) navigations.push({ at, page, url });
  }
  const opened = [...pages.values()].map(({ page, from, to, url }) => ({ page, from, to, url }));
  return { navigations, pages: opened };
}

/** The domains of the protocol with most entries: `Network`, `Page`. */
export function domainsOf(rows: readonly LogRow[]): [domain: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { name } of rows) {
    const domain = domainOf(name);
    counts.set(domain, (counts.get(domain) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, DOMAINS_MAX);
}

export function domainOf(method: string): string {
  return method.split('.', 1)[0] ?? '';
}
