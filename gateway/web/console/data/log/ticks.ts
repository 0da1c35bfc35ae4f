/** What the waterfall of a run marks of the log of its session: what a person looks for. Pure. */
import type { ListName, LogModel, LogRow } from './model.ts';

export type Tick = {
  kind: 'navigation' | 'request' | 'console';
  /** Unix ms. */
  at: number;
  lengthMs?: number | undefined;
  text: string;
  state: LogRow['state'];
  page: number;
  /** Its place in the list of the session's page. */
  list: ListName;
  index: number;
};
export type Ticks = { ticks: Tick[]; isCut: boolean };

/** Ours: a request that a person would notice. */
const SLOW_MS = 1_000;
/** Of each kind. Ours: more marks cannot be told apart. */
const TICKS_MAX = 150;

/** Navigations, requests that were slow or failed, and lines of the console, the first of each. */
export function ticksOf({ net, console: lines }: LogModel): Ticks {
  const found = [
    first(net, 'net', (row) => (isNavigation(row) ? 'navigation' : undefined)),
    first(net, 'net', (row) => (!isNavigation(row) && isSlow(row) ? 'request' : undefined)),
    first(lines, 'console', () => 'console'),
  ];
  const ticks = found.flatMap((one) => one.ticks).sort((a, b) => a.at - b.at);
  return { ticks, isCut: found.some(({ isCut }) => isCut) };
}

function first(
  rows: readonly LogRow[],
  list: ListName,
  kindOf: (row: LogRow) => Tick['kind'] | undefined,
): Ticks {
  const ticks: Tick[] = [];
  for (const [index, row] of rows.entries()) {
    const kind = kindOf(row);
    if (kind === undefined) continue;
    if (ticks.length === TICKS_MAX) return { ticks, isCut: true };
    const { at, lengthMs, state, page } = row;
    ticks.push({ kind, at, lengthMs, text: textOf(row), state, page, list, index });
  }
  return { ticks, isCut: false };
}

function textOf({ name, text, code, note }: LogRow): string {
  return [name, text, code ?? note].filter((one) => one !== undefined && one !== '').join(' ');
}

function isNavigation({ kind }: LogRow): boolean {
  return kind === 'Document';
}

function isSlow({ lengthMs = 0, state }: LogRow): boolean {
  return lengthMs >= SLOW_MS || state === 'failed';
}
