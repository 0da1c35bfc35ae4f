/** What the page and the thread of a log tell one another. */
import type { Lane, Range } from './lanes.ts';
import type { ListName, LogRow } from './model.ts';
import type { Ticks } from './ticks.ts';

export type ToThread =
  | { type: 'load'; path: string; share: string; from: number; to: number | undefined }
  | { type: 'select'; list: ListName; filter: string }
  | { type: 'rows'; from: number; to: number }
  | { type: 'time'; at: number }
  | { type: 'ticks' }
  | { type: 'entry'; index: number };
/** `index` of a row is its place in its list without a filter: it stays when more rows come. */
export type IndexedRow = LogRow & { index: number };
export type FromThread =
  | {
      type: 'loaded';
      counts: Record<ListName, number>;
      range: Range;
      lanes: Record<ListName, Lane>;
      tookMs: number;
    }
  | { type: 'failed'; message: string; status: number }
  | { type: 'selected'; list: ListName; filter: string; count: number }
  | { type: 'rows'; from: number; rows: IndexedRow[] }
  | { type: 'time'; position: number }
  | ({ type: 'ticks' } & Ticks)
  | {
      type: 'entry';
      index: number;
      row: IndexedRow | undefined;
      position: number;
      texts: string[];
    };
