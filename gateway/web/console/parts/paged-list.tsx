/** A list in pages by cursor that changes arrive in: newer rows wait while it is scrolled. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, sentenceOf, withQuery } from '../data/api.ts';
import { onChange } from '../data/changes.ts';
import { paced } from '../data/paced.ts';
import { appended, newerThan, type Page, type Row, refreshed } from '../data/paged.ts';

const LIMIT = '50';
/** Ours: more changed rows below the first page than this are read when they are opened. */
const READ_MAX = 20;
/** Ours: of a page that is hidden for long; the first page is read again in any case. */
const CHANGED_MAX = 10_000;
/** Kinds of which one row can be read. */
const READABLE: ReadonlySet<string> = new Set(['SESSIONS', 'INVOCATIONS']);
/** An answer may have no rows and a cursor: the search goes on, this often at once. */
const EMPTY_PAGES_MAX = 20;

export type Source<T> = {
  /** Path of the list. */
  path: string;
  /** Its filters. */
  query: Record<string, string | undefined>;
  /** Kinds of changes. */
  kind: string;
  /** The rows in an answer. */
  rowsOf(answer: Record<string, unknown>): T[];
};
export type PagedList<T> = {
  rows: T[];
  isLoaded: boolean;
  error: string | undefined;
  hasMore: boolean;
  /** How many newer rows wait. */
  waiting: number;
  more(): void;
  showWaiting(): void;
  again(): void;
};
type Lists<T> = Page<T> & { isLoaded: boolean; waiting: T[]; error?: string };

/** The list; `isScrolled` tells whether new rows would move what a person reads. */
export function usePagedList<T extends Row>(
  source: Source<T>,
  isScrolled: () => boolean,
): PagedList<T> {
  const { path, query, kind } = source;
  const key = withQuery(path, query);
  const empty = { rows: [], nextCursor: undefined, isLoaded: false, waiting: [] };
  const [lists, setLists] = useState<Lists<T>>(empty);
  const latest = useRef({ source, isScrolled, key, lists });
  latest.current = { source, isScrolled, key, lists };

  const load = useCallback(async (isFirst: boolean) => {
    const { key: asked, source: from } = latest.current;
    const isOld = () => latest.current.key !== asked;
    try {
      const page = await pageOf(from, undefined);
      if (isOld()) return;
      const { isScrolled: scrolled } = latest.current;
      setLists((old) => (isFirst ? firstOf(page) : merged(old, page, scrolled())));
    } catch (error) {
      if (!isOld()) setLists((old) => ({ ...old, isLoaded: true, error: sentenceOf(error) }));
    }
  }, []);
  // other filters are another list; asked for before the frame without rows is drawn
  useLayoutEffect(() => {
    setLists(empty);
    void load(true);
  }, [key, load]);
  useEffect(() => {
    const changed = new Set<string>();
    const reads = paced(async () => {
      const ids = [...changed];
      changed.clear();
      await Promise.all([load(false), readChanged(ids, latest.current, setLists)]);
    });
    const end = onChange([kind], ({ ids }) => {
      for (const id of ids) if (changed.size < CHANGED_MAX) changed.add(id);
      reads.request();
    });
    return () => {
      end();
      reads.stop();
    };
  }, [kind, load]);

  const more = async () => {
    const { nextCursor } = lists;
    if (nextCursor === undefined) return;
    try {
      const page = await pageOf(source, nextCursor);
      if (latest.current.key !== key) return;
      setLists((old) => ({ ...old, ...page, rows: appended(old.rows, page.rows) }));
    } catch (error) {
      setLists((old) => ({ ...old, error: sentenceOf(error) }));
    }
  };
  return {
    rows: lists.rows,
    isLoaded: lists.isLoaded,
    error: lists.error,
    hasMore: lists.nextCursor !== undefined,
    waiting: lists.waiting.length,
    more: () => void more(),
    showWaiting: () =>
      setLists((old) => ({ ...old, rows: appended(old.waiting, old.rows), waiting: [] })),
    again: () => void load(false),
  };
}

function firstOf<T>(page: Page<T>): Lists<T> {
  return { ...page, isLoaded: true, waiting: [] };
}

function merged<T extends Row>(old: Lists<T>, page: Page<T>, isScrolled: boolean): Lists<T> {
  const newer = isScrolled ? newerThan(old.rows, page.rows) : [];
  const ids = new Set(newer.map(({ id }) => id));
  const rows = refreshed(old.rows, page).filter(({ id }) => !ids.has(id));
  const isWhole = old.rows.length <= page.rows.length;
  const nextCursor = isWhole ? page.nextCursor : old.nextCursor;
  return { rows, nextCursor, isLoaded: true, waiting: newer };
}

async function pageOf<T extends Row>(
  { path, query, rowsOf }: Source<T>,
  cursor: string | undefined,
): Promise<Page<T>> {
  let next = cursor;
  for (let tries = 0; ; tries += 1) {
    const url = withQuery(path, { ...query, limit: LIMIT, cursor: next });
    const answer = await api<Record<string, unknown>>(url);
    const rows = rowsOf(answer);
    const given = answer['nextCursor'];
    next = typeof given === 'string' ? given : undefined;
    if (rows.length > 0 || next === undefined || tries >= EMPTY_PAGES_MAX) {
      return { rows, nextCursor: next };
    }
  }
}

/** Reads changed rows that are below the first page, where a row can be read alone. */
async function readChanged<T extends Row>(
  ids: readonly string[],
  { source, lists }: { source: Source<T>; lists: Lists<T> },
  setLists: (change: (old: Lists<T>) => Lists<T>) => void,
): Promise<void> {
  const below = lists.rows.slice(Number(LIMIT)).filter(({ id }) => ids.includes(id));
  if (!READABLE.has(source.kind) || below.length > READ_MAX) return;
  for (const { id } of below) {
    const row = await api<T>(`${source.path}/${id}`).catch(() => undefined);
    if (row === undefined) continue;
    setLists((old) => ({ ...old, rows: old.rows.map((one) => (one.id === id ? row : one)) }));
  }
}
