/**
 * A session's protocol log as three lists: every entry, requests joined by their id, and lines of
 * the console. Pure: it runs in a thread of its own, because all texts in it are of visited pages.
 */
import { type Fields, fieldsOf, numberOf, textOf } from './json.ts';

/** An entry of GET /v1/sessions/{id}/logs, as far as it is read. */
export type LogEntry = {
  method?: unknown;
  pageId?: unknown;
  timestamp?: unknown;
  request?: { timestamp?: unknown; params?: unknown };
  response?: { timestamp?: unknown; result?: unknown };
};
export type ListName = 'cdp' | 'net' | 'console';
/** `at` is in Unix milliseconds; `entries` are indexes of the log. */
export type LogRow = {
  at: number;
  lengthMs?: number;
  page: number;
  name: string;
  text: string;
  kind: string;
  /** Why a request failed. */
  note?: string;
  code?: number;
  bytes?: number;
  state: 'running' | 'done' | 'failed' | 'waiting';
  entries: number[];
};
export type LogModel = Record<ListName, LogRow[]>;

const ARGS_MAX = 20;
const ENTRIES_MAX = 16;
const CONSOLE = new Set(['Runtime.consoleAPICalled', 'Log.entryAdded', 'Runtime.exceptionThrown']);

/** The three lists of the entries, oldest first. */
export function modelOf(entries: readonly LogEntry[]): LogModel {
  const requests = openRequests();
  const model: LogModel = { cdp: [], net: requests.rows, console: [] };
  entries.forEach((entry, index) => {
    model.cdp.push(commandRow(entry, index));
    const method = String(entry.method);
    if (method.startsWith('Network.')) requests.add(method, entry, index);
    else if (CONSOLE.has(method)) model.console.push(consoleRow(method, entry, index));
  });
  return model;
}

function commandRow(entry: LogEntry, index: number): LogRow {
  const params = fieldsOf(entry.request?.params);
  const result = fieldsOf(entry.response?.result);
  const isFailed = 'error' in result || 'exceptionDetails' in result;
  const row: LogRow = {
    at: numberOf(entry.timestamp) ?? 0,
    page: numberOf(entry.pageId) ?? 0,
    name: textOf(entry.method),
    text: summaryOf(params),
    kind: entry.response === undefined ? 'event' : 'command',
    state: isFailed ? 'failed' : 'done',
    entries: [index],
  };
  const [from, to] = [numberOf(entry.request?.timestamp), numberOf(entry.response?.timestamp)];
  if (from !== undefined && to !== undefined) row.lengthMs = Math.max(0, to - from);
  return row;
}

/** The first texts and numbers of the parameters: what a person recognizes an entry by. */
function summaryOf(params: Fields): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(params)) {
    const isShort = typeof value === 'string' || typeof value === 'number';
    if (isShort && parts.length < 4) parts.push(`${key}: ${String(value).slice(0, 120)}`);
  }
  return textOf(parts.join('  '));
}

/** Joins events of the domain Network by page and request id. A redirect ends a row. */
function openRequests() {
  const rows: LogRow[] = [];
  const open = new Map<string, { row: LogRow; sentAt: number }>();
  const begin = (key: string, entry: LogEntry, index: number) => {
    const params = fieldsOf(entry.request?.params);
    const request = fieldsOf(params['request']);
    const row: LogRow = {
      at: numberOf(entry.timestamp) ?? 0,
      page: numberOf(entry.pageId) ?? 0,
      name: textOf(request['method']),
      text: textOf(request['url']),
      kind: textOf(params['type']),
      state: 'waiting',
      entries: [index],
    };
    rows.push(row);
    open.set(key, { row, sentAt: numberOf(params['timestamp']) ?? Number.NaN });
  };
  return {
    rows,
    add(method: string, entry: LogEntry, index: number): void {
      const params = fieldsOf(entry.request?.params);
      const key = `${numberOf(entry.pageId) ?? 0} ${String(params['requestId'])}`;
      if (method === 'Network.requestWillBeSent') {
        const before = open.get(key);
        // several clients of a session each receive the event
        if (before && before.sentAt === params['timestamp']) return;
        const redirect = fieldsOf(params['redirectResponse']);
        if (before && params['redirectResponse'] !== undefined) {
          before.row.entries.push(index);
          respond(before.row, redirect);
          end(before, params);
        }
        begin(key, entry, index);
        return;
      }
      const found = open.get(key);
      if (found === undefined) return;
      if (found.row.entries.length < ENTRIES_MAX) found.row.entries.push(index);
      if (method === 'Network.responseReceived') respond(found.row, fieldsOf(params['response']));
      if (method === 'Network.loadingFinished') end(found, params);
      if (method === 'Network.loadingFailed') fail(found, params);
    },
  };
}

function respond(row: LogRow, response: Fields): void {
  const code = numberOf(response['status']);
  if (code === undefined) return;
  row.code = code;
  row.state = code >= 400 ? 'failed' : 'running';
}

type Open = { row: LogRow; sentAt: number };

function end({ row, sentAt }: Open, params: Fields): void {
  const bytes = numberOf(params['encodedDataLength']);
  if (bytes !== undefined) row.bytes = bytes;
  setLength(row, sentAt, params);
  if (row.state !== 'failed') row.state = 'done';
}

function fail({ row, sentAt }: Open, params: Fields): void {
  setLength(row, sentAt, params);
  row.state = 'failed';
  row.note = textOf(params['errorText'] ?? 'failed');
}

/** Chrome's monotonic seconds. */
function setLength(row: LogRow, sentAt: number, params: Fields): void {
  const endedAt = numberOf(params['timestamp']) ?? Number.NaN;
  const lengthMs = (endedAt - sentAt) * 1_000;
  if (Number.isFinite(lengthMs)) row.lengthMs = Math.max(0, lengthMs);
}

function consoleRow(method: string, entry: LogEntry, index: number): LogRow {
  const params = fieldsOf(entry.request?.params);
  const { level, text } = lineOf(method, params);
  return {
    at: numberOf(entry.timestamp) ?? 0,
    page: numberOf(entry.pageId) ?? 0,
    name: textOf(level),
    text: textOf(text),
    kind: method === 'Runtime.consoleAPICalled' ? 'console' : 'browser',
    state: stateOf(level),
    entries: [index],
  };
}

function lineOf(method: string, params: Fields): { level: string; text: string } {
  if (method === 'Log.entryAdded') {
    const line = fieldsOf(params['entry']);
    return { level: String(line['level'] ?? 'info'), text: String(line['text'] ?? '') };
  }
  if (method === 'Runtime.exceptionThrown') {
    const details = fieldsOf(params['exceptionDetails']);
    const { description } = fieldsOf(details['exception']);
    return { level: 'error', text: String(description ?? details['text'] ?? '') };
  }
  const args = Array.isArray(params['args']) ? params['args'].slice(0, ARGS_MAX) : [];
  return { level: String(params['type'] ?? 'log'), text: args.map(argumentText).join(' ') };
}

function argumentText(argument: unknown): string {
  const { value, description, type } = fieldsOf(argument);
  if (typeof value === 'string') return textOf(value);
  if (value !== undefined && typeof value !== 'object') return String(value);
  return textOf(description ?? type);
}

function stateOf(level: string): LogRow['state'] {
  if (level === 'error' || level === 'assert') return 'failed';
  return level === 'warning' ? 'waiting' : 'done';
}
