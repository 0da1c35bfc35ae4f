/**
 * Requests of a log as HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), entry by entry.
 * All of its texts are of visited pages, and of any shape. The protocol log has no bodies and no
 * secrets, so the file has none. Pure.
 */
import { type Fields, fieldsOf, numberOf, textOf } from './json.ts';
import type { LogEntry, LogRow } from './model.ts';
import type { LoggedPage } from './moments.ts';

/** Ours: a log of 64 MiB has less; a page that sends more makes no file that fills the memory. */
export const HAR_ENTRIES_MAX = 50_000;
const FIELDS_MAX = 500;
const TEXT_MAX_CHARS = 65_536;
/** HAR's word for a size that is not known. */
const UNKNOWN = -1;
/** The protocol of HTTP as Chrome names it, and as HAR does. */
const VERSIONS: Record<string, string> = {
  'http/1.0': 'HTTP/1.0',
  'http/1.1': 'HTTP/1.1',
  h2: 'HTTP/2',
  h3: 'HTTP/3',
};

type Source = {
  rows: readonly LogRow[];
  entries: readonly LogEntry[];
  pages: readonly LoggedPage[];
};
type Named = { name: string; value: string };

/** The parts of the file, in order: joined, they are its JSON. */
export function harOf({ rows, entries, pages }: Source): string[] {
  const kept = rows.slice(0, HAR_ENTRIES_MAX);
  const isCut = kept.length < rows.length;
  const head = JSON.stringify({
    version: '1.2',
    creator: { name: 'tabern', version: '1' },
    pages: pages.map(pageOf),
    comment: isCut ? `the first ${kept.length} of ${rows.length} requests` : '',
  });
  const known = new Set(pages.map(({ page }) => page));
  const parts = kept.map((row, index) => {
    const entry = entryOf(
      row,
      row.entries.map((at) => entries[at]),
      known,
    );
    return `${index === 0 ? '' : ',\n'}${JSON.stringify(entry)}`;
  });
  return [`{"log":${head.slice(0, -1)},"entries":[\n`, ...parts, '\n]}}\n'];
}

function pageOf({ page, from, url }: LoggedPage) {
  return {
    startedDateTime: new Date(from).toISOString(),
    id: pageId(page),
    title: url,
    pageTimings: { onContentLoad: UNKNOWN, onLoad: UNKNOWN },
  };
}

function entryOf(
  row: LogRow,
  messages: readonly (LogEntry | undefined)[],
  pages: ReadonlySet<number>,
) {
  const [first] = messages;
  const sent = fieldsOf(first?.request?.params);
  const response = responseOf(messages);
  const timings = timingsOf(row, fieldsOf(response['timing']), numberOf(sent['timestamp']));
  const address = textOf(response['remoteIPAddress']).replaceAll(/[[\]]/g, '');
  const connection = response['connectionId'];
  return {
    ...(pages.has(row.page) && { pageref: pageId(row.page) }),
    startedDateTime: new Date(row.at).toISOString(),
    time: totalOf(timings),
    request: requestOf(fieldsOf(sent['request']), response),
    response: answerOf(row, response),
    cache: {},
    timings,
    ...(address !== '' && { serverIPAddress: address }),
    ...(connection !== undefined && { connection: textOf(connection) }),
    _resourceType: row.kind.toLowerCase(),
    ...(row.note !== undefined && { _error: row.note }),
  };
}

/** Of the answer, or of the redirect that the next request reports. */
function responseOf(messages: readonly (LogEntry | undefined)[]): Fields {
  for (const [index, message] of messages.entries()) {
    const params = fieldsOf(message?.request?.params);
    const found = index === 0 ? undefined : (params['response'] ?? params['redirectResponse']);
    if (found !== undefined) return fieldsOf(found);
  }
  return {};
}

function requestOf(request: Fields, response: Fields) {
  const url = textOf(request['url'], TEXT_MAX_CHARS);
  const { postData } = request;
  const headers = headersOf(response['requestHeaders'] ?? request['headers']);
  return {
    method: textOf(request['method']),
    url,
    httpVersion: versionOf(response),
    cookies: [],
    headers,
    queryString: queryOf(url),
    ...(postData !== undefined && {
      postData: {
        mimeType: textIn(headers, 'content-type'),
        params: [],
        text: textOf(postData, TEXT_MAX_CHARS),
      },
    }),
    headersSize: UNKNOWN,
    bodySize: UNKNOWN,
  };
}

function answerOf(row: LogRow, response: Fields) {
  const headers = headersOf(response['headers']);
  const size = numberOf(Number(textIn(headers, 'content-length') || Number.NaN));
  return {
    status: row.code ?? 0,
    statusText: textOf(response['statusText']),
    httpVersion: versionOf(response),
    cookies: [],
    headers,
    content: { size: size ?? UNKNOWN, mimeType: textOf(response['mimeType']) || 'x-unknown' },
    redirectURL: row.code !== undefined && isRedirect(row.code) ? textIn(headers, 'location') : '',
    headersSize: UNKNOWN,
    bodySize: UNKNOWN,
    _transferSize: row.bytes ?? UNKNOWN,
  };
}

function isRedirect(code: number): boolean {
  return code >= 300 && code < 400;
}

function versionOf(response: Fields): string {
  const protocol = textOf(response['protocol']);
  return VERSIONS[protocol] ?? protocol;
}

function headersOf(headers: unknown): Named[] {
  const named = Object.entries(fieldsOf(headers)).slice(0, FIELDS_MAX);
  return named.map(([name, value]) => ({ name, value: textOf(value, TEXT_MAX_CHARS) }));
}

function textIn(headers: readonly Named[], name: string): string {
  return headers.find((one) => one.name.toLowerCase() === name)?.value ?? '';
}

function queryOf(url: string): Named[] {
  if (!URL.canParse(url)) return [];
  const pairs = [...new URL(url).searchParams].slice(0, FIELDS_MAX);
  return pairs.map(([name, value]) => ({ name, value }));
}

/** In ms; -1 for a time that is not known. `ssl` is a part of `connect`. */
type Timings = Record<'blocked' | 'dns' | 'connect' | 'ssl' | 'send' | 'wait' | 'receive', number>;

/** In ms. Chrome's times are relative to `requestTime`, in seconds of its monotonic clock. */
function timingsOf({ lengthMs = 0 }: LogRow, timing: Fields, sentAt: number | undefined): Timings {
  const at = (name: string) => numberOf(timing[name]) ?? UNKNOWN;
  const between = (from: string, to: string) =>
    at(from) < 0 || at(to) < at(from) ? UNKNOWN : at(to) - at(from);
  const send = Math.max(0, between('sendStart', 'sendEnd'));
  const wait = Math.max(0, between('sendEnd', 'receiveHeadersEnd'));
  const times: Timings = {
    blocked: blockedOf(timing, sentAt),
    dns: between('dnsStart', 'dnsEnd'),
    connect: between('connectStart', 'connectEnd'),
    ssl: between('sslStart', 'sslEnd'),
    send,
    wait,
    receive: 0,
  };
  return { ...times, receive: Math.max(0, lengthMs - totalOf(times)) };
}

/** From the request of the page until the network begins with it. */
function blockedOf(timing: Fields, sentAt: number | undefined): number {
  const requestTime = numberOf(timing['requestTime']);
  if (requestTime === undefined || sentAt === undefined) return UNKNOWN;
  const begins = ['dnsStart', 'connectStart', 'sendStart'].map((name) => numberOf(timing[name]));
  const first = begins.find((ms) => ms !== undefined && ms >= 0) ?? 0;
  return Math.max(0, (requestTime - sentAt) * 1_000) + first;
}

function totalOf({ blocked, dns, connect, send, wait, receive }: Timings): number {
  return [blocked, dns, connect, send, wait, receive].reduce((sum, ms) => sum + Math.max(0, ms), 0);
}

function pageId(page: number): string {
  return `page_${page}`;
}
