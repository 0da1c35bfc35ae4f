/** The log of a session, which a thread holds: counts, the rows in view and the chosen entry. */
import { useSignalEffect } from '@preact/signals';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { inProject } from '../../data/api.ts';
import { now } from '../../data/clock.ts';
import type { FromThread, IndexedRow, LogTimeline, ToThread } from '../../data/log/messages.ts';
import type { ListName } from '../../data/log/model.ts';
import { seek, shown, wanted } from '../../data/playhead.ts';
import { route, setQuery } from '../../data/router.ts';
import { logOf, sharedToken } from '../../data/share.ts';
import { threadUrl } from '../../data/thread-url.ts';
import type { Session } from '../../data/types.ts';
import type { Window } from '../../data/window.ts';
import { canWatch, rangeOf, startOf } from './clock.ts';
import { save } from './save.ts';

/** Ours: the lists are made anew for new entries, so a long log is read more rarely. */
const REFRESH_MS = 4_000;
const REFRESH_FACTOR = 10;
const ROWS_KEPT_MAX = 2_000;
const NEAR_MS = 100;

export type ChosenEntry = { row: IndexedRow; texts: string[]; list: ListName };
export type Log = {
  isLoaded: boolean;
  error: string | undefined;
  counts: Record<ListName, number>;
  /** Domains of the protocol, with their entries. */
  domains: [domain: string, count: number][];
  /** Rows of the list that match the filter. */
  count: number;
  selected: number;
  entry: ChosenEntry | undefined;
  rowAt(row: number): IndexedRow | undefined;
  select(row: number): void;
  see(window: Window): void;
  /** The row at the time that the picture shows; -1 without one. */
  near: number;
  timeline: LogTimeline | undefined;
  /** Chooses the next or the previous row, also of failed ones only. */
  step(by: 1 | -1, isFailed?: boolean): void;
  /** Saves the requests of the list as a HAR file. */
  saveHar(): void;
};

/** Messages that change what is shown. */
type Shown = Exclude<FromThread, { type: 'har' | 'step' }>;
/** A step without a chosen entry begins at `near`. */
type Step = { chosen?: number | undefined; near: number; by: 1 | -1; isFailed: boolean };
type Known = {
  isLoaded: boolean;
  error?: string;
  counts: Record<ListName, number>;
  domains: [domain: string, count: number][];
  count: number;
  rows: ReadonlyMap<number, IndexedRow>;
  entry?: ChosenEntry;
  position: number;
  near: number;
  timeline?: LogTimeline;
};
const NOTHING: Known = {
  isLoaded: false,
  counts: { cdp: 0, net: 0, console: 0 },
  domains: [],
  count: 0,
  rows: new Map(),
  position: -1,
  near: -1,
};

/** The list of the tab; other tabs keep the list that was shown last. */
export function useLog(session: Session, tab: string): Log {
  const list = useListOf(tab);
  const filter = route.value.query.get('q') ?? '';
  const chosen = numberOf(route.value.query.get('e'));
  const range = rangeOf(session);
  const [from, to] = [range?.from, range?.to];
  const [known, setKnown] = useState(NOTHING);
  const view = useRef<Window>({ from: 0, to: 50 });
  const choose = ({ index, at, page }: IndexedRow) => {
    setQuery({ e: String(index) });
    // a live picture stays until a person leaves it
    if (!canWatch(session) || wanted.peek() !== undefined) seek(at, page);
  };
  const thread = useThread(session, (message, tell) => {
    if (message.type === 'selected') tell({ type: 'rows', ...view.current });
    if (message.type === 'har') save(message.file, `${session.id}.har`);
    else if (message.type === 'step') choose(message.row);
    else setKnown((old) => taken(old, message, list));
  });
  useEffect(() => {
    setKnown((old) => ({ ...old, rows: new Map(), position: -1 }));
    const wantedRange = from === undefined || to === undefined ? undefined : { from, to };
    thread({ type: 'select', list, filter, range: wantedRange });
  }, [thread, list, filter, from, to]);
  const { isLoaded, count } = known;
  // read again when rows have come
  useEffect(() => {
    if (chosen === undefined) setKnown(withoutEntry);
    else if (isLoaded) thread({ type: 'entry', index: chosen });
  }, [thread, chosen, list, filter, from, to, isLoaded, count]);
  const see = useCallback(
    (window: Window) => {
      view.current = window;
      thread({ type: 'rows', ...window });
    },
    [thread],
  );
  useNear(thread, `${list} ${filter} ${from} ${to} ${count}`);
  const { rows, position, near } = known;
  const ask = (step: Step) => thread({ type: 'step', chosen: undefined, ...step });
  const select = (row: number) => {
    const line = rows.get(row);
    if (line !== undefined) choose(line);
    else ask({ near: row - 1, by: 1, isFailed: false }); // it is not read yet
  };
  // the address knows what is chosen before this component does
  const step = (by: 1 | -1, isFailed = false) => {
    ask({ chosen: numberOf(route.peek().query.get('e')), near, by, isFailed });
  };
  return {
    ...known,
    error: known.error,
    timeline: known.timeline,
    entry: known.entry,
    selected: position,
    rowAt: (row) => rows.get(row),
    select,
    see,
    step,
    saveHar: () => thread({ type: 'har' }),
  };
}

function useListOf(tab: string): ListName {
  const last = useRef<ListName>('cdp');
  if (tab === 'cdp' || tab === 'net' || tab === 'console') last.current = tab;
  return last.current;
}

type Tell = (message: ToThread) => void;

/** Starts the thread, and reads the log again while the session runs and is looked at. */
function useThread(session: Session, hear: (message: FromThread, tell: Tell) => void): Tell {
  const { id, status } = session;
  const latest = useRef({ hear, session });
  latest.current = { hear, session };
  const isRunning = useRef(false);
  const wasRunning = isRunning.current;
  isRunning.current = status === 'RUNNING' || status === 'PENDING';
  const worker = useMemo(() => new Worker(threadUrl(LOG_THREAD), { type: 'module' }), []);
  const tell = useCallback<Tell>((message) => worker.postMessage(message), [worker]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const load = () => {
      if (document.hidden) timer = setTimeout(load, REFRESH_MS);
      else tell(loadOf(latest.current.session));
    };
    worker.onmessage = ({ data }: MessageEvent<FromThread>) => {
      latest.current.hear(data, tell);
      const isRead = data.type === 'loaded' || data.type === 'failed';
      if (!isRead || !isRunning.current) return;
      const tookMs = data.type === 'loaded' ? data.tookMs : REFRESH_MS;
      timer = setTimeout(load, Math.max(REFRESH_MS, REFRESH_FACTOR * tookMs));
    };
    load();
    return () => {
      clearTimeout(timer);
      worker.terminate();
    };
  }, [worker, id, tell]);
  useEffect(() => {
    // its last entries are stored before it ends
    if (wasRunning && !isRunning.current) tell(loadOf(latest.current.session));
  }, [wasRunning, tell]);
  return tell;
}

/** The time of a run begins with its steps before the browser. */
function loadOf(session: Session): ToThread {
  const { id, createdAt, endedAt, invocationId } = session;
  const from = invocationId === undefined ? startOf(session) : Date.parse(createdAt);
  const to = endedAt === undefined ? now.peek() : Date.parse(endedAt);
  const path = inProject(logOf(id));
  return { type: 'load', path, share: sharedToken(), from, to };
}

/** Keeps the row at the time of the picture, ten times a second at most. */
function useNear(thread: Tell, selection: string): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const ask = useCallback(() => {
    timer.current = undefined;
    const at = shown.peek() ?? wanted.peek()?.at;
    if (at !== undefined) thread({ type: 'time', at });
  }, [thread]);
  useSignalEffect(() => {
    void shown.value;
    void wanted.value;
    timer.current ??= setTimeout(ask, NEAR_MS);
  });
  // `selection` stands for the rows
  useEffect(ask, [ask, selection]);
  useEffect(() => () => clearTimeout(timer.current), []);
}

function taken(old: Known, message: Shown, list: ListName): Known {
  switch (message.type) {
    case 'loaded': {
      const { error: _error, ...rest } = old;
      const { counts, domains, timeline } = message;
      return { ...rest, isLoaded: true, counts, domains, timeline };
    }
    case 'failed':
      return { ...old, isLoaded: true, error: message.message };
    case 'time':
      return { ...old, near: message.position };
    case 'ticks':
      return old; // of the page of a run
    case 'selected':
      return { ...old, count: message.count };
    case 'rows': {
      const isMany = old.rows.size > ROWS_KEPT_MAX;
      const rows = new Map(isMany ? [] : old.rows);
      message.rows.forEach((row, index) => {
        rows.set(message.from + index, row);
      });
      return { ...old, rows };
    }
    case 'entry': {
      const { row, texts, position } = message;
      if (row === undefined) return withoutEntry(old);
      return { ...old, entry: { row, texts, list }, position };
    }
  }
}

function withoutEntry({ entry: _entry, ...rest }: Known): Known {
  return { ...rest, position: -1 };
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
