/**
 * The thread of a session's log: reads, parses, joins and filters, so that the page does not. It
 * keeps what it has read, and reads what was added since.
 */
import { escaped } from '../format.ts';
import { readByToken, shareHeaders } from '../share.ts';
import { matching } from './filter.ts';
import { type Fold, foldOf, idleOf, type Range } from './fold.ts';
import { harOf } from './har.ts';
import { besides, laneOf, placeAt } from './lanes.ts';
import type { FromThread, IndexedRow, Lanes, LogTimeline, ToThread } from './messages.ts';
import { type ListName, type LogEntry, type LogModel, modelOf } from './model.ts';
import { domainsOf, type Moments, momentsOf } from './moments.ts';
import { openParts, type Part } from './parts.ts';
import { ticksOf } from './ticks.ts';

/** Ours: what a person reads of one message. */
const ENTRY_MAX_CHARS = 200_000;

/** Ours: a bar has about four pixels. */
const LANE_PARTS = 300;

type Load = Extract<ToThread, { type: 'load' }>;
type Step = Extract<ToThread, { type: 'step' }>;
type Selection = { list: ListName; filter: string; range?: Range | undefined };

const log = openParts();
const { entries } = log;
/** Loads follow one another: two at once would each add the same entries. */
let loading: Promise<void> = Promise.resolve();
let model: LogModel = { cdp: [], net: [], console: [] };
let moments: Moments = { navigations: [], pages: [] };
let selection: Selection = { list: 'cdp', filter: '' };
let found: number[] = [];

addEventListener('message', ({ data }: MessageEvent<ToThread>) => {
  switch (data.type) {
    case 'load':
      loading = loading.then(() => load(data));
      break;
    case 'select':
      selection = { list: data.list, filter: data.filter, range: data.range };
      select();
      break;
    case 'rows':
      tell({ type: 'rows', from: data.from, rows: found.slice(data.from, data.to).map(rowAt) });
      break;
    case 'time':
      tell({ type: 'time', position: placeAt(model[selection.list], found, data.at) });
      break;
    case 'ticks':
      tell({ type: 'ticks', ...ticksOf(model) });
      break;
    case 'entry':
      tellEntry(data.index);
      break;
    case 'step':
      tellStep(data);
      break;
    case 'har':
      tellHar();
      break;
  }
});

async function load({ path, share, from, to }: Load): Promise<void> {
  const begun = performance.now();
  try {
    readByToken(share);
    for (let isEnd = false; !isEnd; ) {
      const answer = await fetch(`${path}?from=${log.from}`, {
        cache: 'no-store',
        headers: shareHeaders(),
      });
      if (!answer.ok) {
        tell({ type: 'failed', status: answer.status, message: await messageOf(answer) });
        return;
      }
      const part = (await answer.json()) as Part; // each member is checked where it is read
      log.add(part);
      isEnd = part.isEnd;
    }
  } catch {
    tell({ type: 'failed', status: 0, message: 'the log could not be read' });
    return;
  }
  if (entries.length > model.cdp.length) {
    model = modelOf(entries);
    moments = momentsOf(entries);
  }
  const counts = { cdp: model.cdp.length, net: model.net.length, console: model.console.length };
  const range = { from, to: Math.max(to ?? from, model.cdp.at(-1)?.at ?? from) };
  const timeline = timelineOf(range);
  const tookMs = performance.now() - begun;
  tell({ type: 'loaded', counts, domains: domainsOf(model.cdp), timeline, tookMs });
  select();
}

function timelineOf(range: Range): LogTimeline {
  const times = model.cdp.flatMap(({ at, lengthMs }) => {
    return lengthMs === undefined ? [at] : [at, at + lengthMs];
  });
  const idle = idleOf(times, range);
  const whole = foldOf(range, []);
  const folded = foldOf(range, idle);
  return {
    ...moments,
    range,
    idle,
    whole: { fold: whole, lanes: lanesOf(whole) },
    folded: { fold: folded, lanes: lanesOf(folded) },
  };
}

function lanesOf(fold: Fold): Lanes {
  return {
    cdp: laneOf('cdp', model.cdp, fold, LANE_PARTS),
    net: laneOf('net', model.net, fold, LANE_PARTS),
    console: laneOf('console', model.console, fold, LANE_PARTS),
  };
}

function select(): void {
  const { list, filter, range } = selection;
  found = matching(model[list], filter, range);
  tell({ type: 'selected', list, filter, count: found.length });
}

function rowAt(index: number): IndexedRow {
  const row = model[selection.list][index];
  if (row === undefined) throw new Error('a row of the selection is not in its list');
  return { ...row, index };
}

function tellEntry(index: number): void {
  const isThere = model[selection.list][index] !== undefined;
  const row = isThere ? rowAt(index) : undefined;
  const texts = (row?.entries ?? []).map((at) => entryText(entries[at]));
  tell({ type: 'entry', index, row, position: found.indexOf(index), texts });
}

/** The next row of the selection in one direction; for failed ones, from the other end at last. */
function tellStep({ chosen, near, by, isFailed }: Step): void {
  const isWanted = (place: number) => !isFailed || stateAt(place) === 'failed';
  let place = chosen === undefined ? near + by : besides(found, chosen, by);
  while (place >= 0 && place < found.length && !isWanted(place)) place += by;
  if (isFailed && place >= found.length) place = found.findIndex((_, one) => isWanted(one));
  const index = found[place];
  if (index !== undefined) tell({ type: 'step', row: rowAt(index) });
}

function stateAt(place: number): string | undefined {
  return model[selection.list][found[place] ?? -1]?.state;
}

/** The requests that the list of the network shows. */
function tellHar(): void {
  const isShown = selection.list === 'net';
  const rows = isShown ? found.flatMap((index) => model.net[index] ?? []) : model.net;
  const parts = harOf({ rows, entries, pages: moments.pages });
  tell({ type: 'har', file: new Blob(parts, { type: 'application/json' }) });
}

function entryText(entry: LogEntry | undefined): string {
  const text = escaped(JSON.stringify(entry, undefined, 2) ?? '');
  return text.length > ENTRY_MAX_CHARS ? `${text.slice(0, ENTRY_MAX_CHARS)}\n…` : text;
}

async function messageOf(answer: Response): Promise<string> {
  try {
    const { message } = (await answer.json()) as { message?: unknown };
    return String(message);
  } catch {
    return `the service answered ${answer.status}`;
  }
}

function tell(message: FromThread): void {
  postMessage(message);
}
