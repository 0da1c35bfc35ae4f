/** The thread of a session's log: reads, parses, joins and filters, so that the page does not. */
import { escaped } from '../format.ts';
import { readByToken, shareHeaders } from '../share.ts';
import { matching } from './filter.ts';
import { laneOf, placeAt } from './lanes.ts';
import type { FromThread, IndexedRow, ToThread } from './messages.ts';
import { type ListName, type LogEntry, type LogModel, modelOf } from './model.ts';
import { ticksOf } from './ticks.ts';

/** Ours: what a person reads of one message. */
const ENTRY_MAX_CHARS = 200_000;

/** Ours: a bar has about four pixels. */
const LANE_PARTS = 300;

type Load = Extract<ToThread, { type: 'load' }>;

let entries: LogEntry[] = [];
let model: LogModel = { cdp: [], net: [], console: [] };
let selection: { list: ListName; filter: string } = { list: 'cdp', filter: '' };
let found: number[] = [];

addEventListener('message', ({ data }: MessageEvent<ToThread>) => {
  switch (data.type) {
    case 'load':
      void load(data);
      break;
    case 'select':
      selection = { list: data.list, filter: data.filter };
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
  }
});

async function load({ path, share, from, to }: Load): Promise<void> {
  const begun = performance.now();
  try {
    readByToken(share);
    const answer = await fetch(path, {
      cache: 'no-store',
      headers: shareHeaders(),
    });
    if (!answer.ok) {
      tell({ type: 'failed', status: answer.status, message: await messageOf(answer) });
      return;
    }
    entries = (await answer.json()) as LogEntry[]; // each member is checked where it is read
    model = modelOf(entries);
  } catch {
    tell({ type: 'failed', status: 0, message: 'the log could not be read' });
    return;
  }
  const counts = { cdp: model.cdp.length, net: model.net.length, console: model.console.length };
  const range = { from, to: Math.max(to ?? from, model.cdp.at(-1)?.at ?? from) };
  const lanes = {
    cdp: laneOf(model.cdp, range, LANE_PARTS),
    net: laneOf(model.net, range, LANE_PARTS),
    console: laneOf(model.console, range, LANE_PARTS),
  };
  tell({ type: 'loaded', counts, range, lanes, tookMs: performance.now() - begun });
  select();
}

function select(): void {
  found = matching(model[selection.list], selection.filter);
  tell({ type: 'selected', list: selection.list, filter: selection.filter, count: found.length });
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

/** Without the unparsed messages, which repeat the parsed ones. */
function entryText(entry: LogEntry | undefined): string {
  const hide = (key: string, value: unknown) => (key === 'rawBody' ? undefined : value);
  const text = escaped(JSON.stringify(entry, hide, 2) ?? '');
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
