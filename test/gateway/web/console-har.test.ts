/** The HAR file of a session's requests, checked against the structure of HAR 1.2. */
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { HAR_ENTRIES_MAX, harOf } from '../../../gateway/web/console/data/log/har.ts';
import { type LogEntry, modelOf } from '../../../gateway/web/console/data/log/model.ts';
import { momentsOf } from '../../../gateway/web/console/data/log/moments.ts';
import { must } from '../../../proto/common/must.ts';
import { harFaults } from '../../support/clients/har.ts';

const har = suite('gateway/web/console-har');

const AT = Date.UTC(2026, 10, 5, 14, 3, 22, 7);
const TIMING = {
  requestTime: 10.01,
  dnsStart: 1,
  dnsEnd: 3,
  connectStart: 3,
  connectEnd: 9,
  sslStart: 5,
  sslEnd: 9,
  sendStart: 9,
  sendEnd: 10,
  receiveHeadersEnd: 60,
};

har('a request with its answer has method, URL, status, headers, query, body and timings', () => {
  const [entry, ...others] = entriesOf([
    navigated(),
    sent({
      method: 'POST',
      url: 'https://a.example/b?x=1&x=%C3%A4',
      headers: { 'Content-Type': 'text/plain', Cookie: '[redacted]' },
      postData: '[redacted]',
    }),
    received({
      status: 201,
      statusText: 'Created',
      protocol: 'h2',
      mimeType: 'text/html',
      headers: { 'content-length': '12', server: 'x' },
      remoteIPAddress: '[2001:db8::1]',
      connectionId: 7,
      timing: TIMING,
    }),
    finished(10.2),
  ]);
  equal(others, []);
  const { request, response, timings, ...rest } = must(entry, 'the entry');
  equal(request, {
    method: 'POST',
    url: 'https://a.example/b?x=1&x=%C3%A4',
    httpVersion: 'HTTP/2',
    cookies: [],
    headers: [
      { name: 'Content-Type', value: 'text/plain' },
      { name: 'Cookie', value: '[redacted]' },
    ],
    queryString: [
      { name: 'x', value: '1' },
      { name: 'x', value: 'ä' },
    ],
    postData: { mimeType: 'text/plain', params: [], text: '[redacted]' },
    headersSize: -1,
    bodySize: -1,
  });
  equal(
    [response['status'], response['statusText'], response['httpVersion']],
    [201, 'Created', 'HTTP/2'],
  );
  equal(response['content'], { size: 12, mimeType: 'text/html' });
  equal(response['headers'], [
    { name: 'content-length', value: '12' },
    { name: 'server', value: 'x' },
  ]);
  equal(rounded(timings), {
    blocked: 11,
    dns: 2,
    connect: 6,
    ssl: 4,
    send: 1,
    wait: 50,
    receive: 130,
  });
  equal(
    [rest['pageref'], rest['serverIPAddress'], rest['connection']],
    ['page_0', '2001:db8::1', '7'],
  );
  is(rest['startedDateTime'], '2026-11-05T14:03:22.007Z');
  ok(Math.abs(Number(rest['time']) - 200) < 0.01);
});

har('a redirect has its own answer, with its location', () => {
  const redirectResponse = { status: 302, headers: { Location: '/b' }, protocol: 'http/1.1' };
  const second = sent(
    { method: 'GET', url: 'https://a.example/b' },
    { redirectResponse, timestamp: 11 },
  );
  const entries = entriesOf([
    sent({ method: 'GET', url: 'https://a.example/' }),
    second,
    received({ status: 200 }),
    finished(11.5),
  ]);
  equal(
    entries.map(({ response }) => [
      response['status'],
      response['redirectURL'],
      response['httpVersion'],
    ]),
    [
      [302, '/b', 'HTTP/1.1'],
      [200, '', ''],
    ],
  );
});

har('a request that fails, and one without an answer, have the status 0', () => {
  const failed = event('Network.loadingFailed', { requestId: '1', errorText: 'net::ERR_FAILED' });
  const [first, second] = entriesOf([
    sent({ method: 'GET', url: 'https://a.example/' }),
    failed,
    sent({ method: 'GET', url: 'https://b.example/' }, { requestId: '2' }),
  ]);
  equal([first?.response['status'], first?.['_error']], [0, 'net::ERR_FAILED']);
  equal([second?.response['status'], second?.time], [0, 0]);
});

har('messages of any shape make a file of the format', () => {
  const long = 'y'.repeat(200_000);
  const [entry] = entriesOf([
    sent({ method: { a: 1 }, url: `https://a.example/?${long}`, headers: 'no', postData: [4] }),
    received({ status: 200, headers: { a: { b: 1 }, '': null }, timing: 'x', protocol: 4 }),
    received({ status: 'x', timing: { requestTime: 'x', sendEnd: -9 } }),
    event('Network.loadingFinished', { requestId: '1', timestamp: 'x' }),
    sent(null, { requestId: {} }),
    event('Network.requestWillBeSent', { truncated: 'long', head: '{"re' }),
  ]);
  is(String(entry?.request['url']).length, 65_536);
  const headers = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, index) => [`h${index}`, 'x']),
  );
  const [many] = entriesOf([sent({ method: 'GET', url: 'x:', headers })]);
  is(must(many, 'the entry').request.headers.length, 500);
});

har('the file has a limit, and says so', () => {
  const count = HAR_ENTRIES_MAX + 1;
  const entries = Array.from({ length: count }, (_, index) =>
    sent({ method: 'GET', url: 'https://a.example/' }, { requestId: `${index}` }),
  );
  const rows = modelOf(entries).net;
  const { log } = JSON.parse(harOf({ rows, entries, pages: [] }).join(''));
  is(log.entries.length, HAR_ENTRIES_MAX);
  is(log.comment, `the first ${HAR_ENTRIES_MAX} of ${count} requests`);
});

har('the check of the format finds what is wrong', () => {
  const good = () => JSON.parse(fileOf([navigated(), sent({ method: 'GET', url: 'https://a/' })]));
  equal(harFaults(good()), []);
  const faults: [change: (file: ReturnType<typeof good>) => void, fault: string][] = [
    [({ log }) => delete log.version, 'har.log.version is missing'],
    [({ log }) => delete log.entries[0].cache, 'har.log.entries[0].cache is missing'],
    [
      ({ log }) => (log.entries[0].timings.send = -1),
      'har.log.entries[0].timings.send is no length',
    ],
    [
      ({ log }) => (log.entries[0].request.odd = 1),
      'har.log.entries[0].request.odd is not of HAR 1.2',
    ],
    [
      ({ log }) => (log.entries[0].startedDateTime = '5'),
      'har.log.entries[0].startedDateTime is no ISO 8601 time',
    ],
    [({ log }) => (log.entries[0].pageref = 'x'), 'entries[0].pageref names no page'],
    [({ log }) => (log.entries[0].time = 9), 'entries[0].time is not its timings'],
    [
      ({ log }) => (log.entries[0].response.headers = {}),
      'har.log.entries[0].response.headers is no list',
    ],
  ];
  for (const [change, fault] of faults) {
    const file = good();
    change(file);
    equal(harFaults(file), [fault]);
  }
});

har.run();

type Entry = Record<string, unknown> & {
  time: number;
  request: Record<string, unknown> & { headers: unknown[] };
  response: Record<string, unknown>;
  timings: Record<string, number>;
};

function fileOf(entries: LogEntry[]): string {
  const { pages } = momentsOf(entries);
  return harOf({ rows: modelOf(entries).net, entries, pages }).join('');
}

/** The entries of the file, which must be of the format. */
function entriesOf(entries: LogEntry[]): Entry[] {
  const file = JSON.parse(fileOf(entries));
  equal(harFaults(file), []);
  return file.log.entries;
}

function sent(request: unknown, more: object = {}): LogEntry {
  const params = { requestId: '1', type: 'Document', timestamp: 10, request };
  return event('Network.requestWillBeSent', Object.assign(params, more));
}

function received(response: unknown): LogEntry {
  return event('Network.responseReceived', { requestId: '1', response });
}

function finished(timestamp: number): LogEntry {
  const params = { requestId: '1', timestamp, encodedDataLength: 512 };
  return event('Network.loadingFinished', params);
}

function navigated(): LogEntry {
  return event('Page.frameNavigated', { frame: { url: 'https://a.example/', loaderId: 'A' } });
}

function event(method: string, params: object): LogEntry {
  return { method, pageId: 0, timestamp: AT, request: { timestamp: AT, params } };
}

function rounded(timings: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(timings).map(([name, ms]) => [name, Math.round(ms)]));
}
