/**
 * What the list shows of running sessions beyond their rows: read every five seconds for the rows
 * that a person can see, in one request, and not at all while the page is hidden.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { Session } from '../../data/types.ts';

const EVERY_MS = 5_000;
/** After a scroll: the rows pass by before a person stops. */
const SETTLED_MS = 150;
/** Source: console.proto, ListRunningSessions. */
const IDS_MAX = 100;

/** Of its active page and its runner; undefined members are not known. */
export type SessionState = {
  id: string;
  title?: string;
  url?: string;
  clients?: number;
  memoryBytes?: number;
};

/** By id, of the sessions that are or were in view. */
export const states = signal<ReadonlyMap<string, SessionState>>(new Map());
/** The running sessions in view, anew for each round of pictures. */
export const inView = signal<ReadonlySet<string>>(new Set());

export function isRunning({ status, isReleased }: Session): boolean {
  return status === 'RUNNING' && !isReleased;
}

/** Keeps both signals current while the list is shown. */
export function useRunning(rows: readonly Session[]): void {
  const latest = useRef(rows);
  latest.current = rows;
  const soon = useRef(() => {});
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => void round(), ms);
    };
    const round = async () => {
      later(EVERY_MS);
      await read(document.hidden ? [] : visibleOf(latest.current));
    };
    soon.current = () => later(SETTLED_MS);
    for (const name of EVENTS) addEventListener(name, soon.current, { passive: true });
    document.addEventListener('visibilitychange', soon.current);
    void round();
    return () => {
      clearTimeout(timer);
      for (const name of EVENTS) removeEventListener(name, soon.current);
      document.removeEventListener('visibilitychange', soon.current);
      inView.value = new Set();
    };
  }, []);
  const running = rows.filter(isRunning).map(({ id }) => id);
  const key = running.join();
  useEffect(() => soon.current(), [key]);
}

const EVENTS = ['scroll', 'resize'];

/** Those whose row is within the window. */
function visibleOf(rows: readonly Session[]): string[] {
  const running = new Set(rows.filter(isRunning).map(({ id }) => id));
  const shown = [...document.querySelectorAll<HTMLElement>('tr[data-id]')].filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const ids = shown.map(({ dataset }) => dataset['id'] ?? '').filter((id) => running.has(id));
  return ids.slice(0, IDS_MAX);
}

async function read(ids: readonly string[]): Promise<void> {
  inView.value = new Set(ids);
  if (ids.length === 0) return;
  try {
    const path = `/console/api/v1/sessions/live?ids=${ids.join()}`;
    const { sessions } = await api<{ sessions: SessionState[] }>(path);
    states.value = new Map([...states.peek(), ...sessions.map((one) => [one.id, one] as const)]);
  } catch {
    // the list itself says what is wrong; the states are as before
  }
}
