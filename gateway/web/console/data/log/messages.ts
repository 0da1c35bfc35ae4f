/** What the page and the thread of a log tell one another. */
import type { Fold, Range } from './fold.ts';
import type { Lane } from './lanes.ts';
import type { ListName, LogRow } from './model.ts';
import type { Moments } from './moments.ts';
import type { Ticks } from './ticks.ts';

/**
 * `from` and `to` of a load in Unix milliseconds; of a running session, `to` is the current time. A
 * step begins at the index that is chosen, else at the place `near`.
 */
export type ToThread =
  | { type: 'load'; path: string; share: string; from: number; to: number | undefined }
  | { type: 'select'; list: ListName; filter: string; range: Range | undefined }
  | { type: 'rows'; from: number; to: number }
  | { type: 'time'; at: number }
  | { type: 'ticks' }
  | { type: 'entry'; index: number }
  | { type: 'step'; chosen: number | undefined; near: number; by: 1 | -1; isFailed: boolean }
  | { type: 'har' };
/** `index` of a row is its place in its list without a filter: it stays when more rows come. */
export type IndexedRow = LogRow & { index: number };
export type Lanes = Record<ListName, Lane>;
/** All that is drawn of a log, to scale and folded. */
export type LogTimeline = Moments & {
  range: Range;
  idle: Range[];
  whole: { fold: Fold; lanes: Lanes };
  folded: { fold: Fold; lanes: Lanes };
};
export type FromThread =
  | {
      type: 'loaded';
      counts: Record<ListName, number>;
      domains: [domain: string, count: number][];
      timeline: LogTimeline;
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
    }
  | { type: 'step'; row: IndexedRow }
  | { type: 'har'; file: Blob };
