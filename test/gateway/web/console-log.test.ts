/** The lists that the console makes of a session's protocol log, and their filter. */
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { matching } from '../../../gateway/web/console/data/log/filter.ts';
import { type LogEntry, modelOf } from '../../../gateway/web/console/data/log/model.ts';
import { openParts } from '../../../gateway/web/console/data/log/parts.ts';
import { ticksOf } from '../../../gateway/web/console/data/log/ticks.ts';
import { must } from '../../../proto/common/must.ts';

const lists = suite('gateway/web/console-log');

lists('a log is read in parts, each once, and says once that it is full', () => {
  const log = openParts();
  const [a, b] = [event('Page.a', {}), event('Page.b', {})];
  const full = { ...event('Tabern.warning', {}), timestamp: 9_000 };
  log.add({ logs: [a], end: 1, isEnd: false });
  log.add({ logs: [], end: 1, isEnd: true });
  is(log.from, 1);
  log.add({ logs: [b], end: 2, isEnd: true });
  log.add({ logs: [full], end: 2, isEnd: true });
  log.add({ logs: [full], end: 2, isEnd: true });
  equal(log.entries, [a, b, full]);
  is(log.from, 2);
});

const sent = (requestId: string, url: string, more: object = {}) => {
  const params = { requestId, type: 'Document', timestamp: 10, request: { method: 'GET', url } };
  return event('Network.requestWillBeSent', { ...params, ...more });
};
const received = (requestId: string, status: number) =>
  event('Network.responseReceived', { requestId, response: { status } });
const finished = (requestId: string) =>
  event('Network.loadingFinished', { requestId, timestamp: 10.25, encodedDataLength: 512 });

lists('events of one request are one row, also among those of others', () => {
  const { net } = modelOf([
    sent('1', 'https://a.example/'),
    sent('2', 'https://b.example/'),
    received('2', 503),
    received('1', 200),
    finished('1'),
    finished('2'),
  ]);
  is(net.length, 2);
  const [a, b] = net;
  equal(a, {
    at: 1_000,
    page: 0,
    name: 'GET',
    text: 'https://a.example/',
    kind: 'Document',
    state: 'done',
    entries: [0, 3, 4],
    code: 200,
    bytes: 512,
    lengthMs: 250,
  });
  equal([b?.code, b?.state, b?.entries], [503, 'failed', [1, 2, 5]]);
});

lists('the same request id of two pages is two requests', () => {
  const { net } = modelOf([
    sent('1', 'https://a.example/'),
    { ...sent('1', 'https://b.example/'), pageId: 1 },
    { ...received('1', 404), pageId: 1 },
  ]);
  equal([net[0]?.code, net[1]?.code], [undefined, 404]);
});

lists('a redirect ends a row and begins another', () => {
  const redirected = sent('1', 'https://a.example/b', {
    timestamp: 10.1,
    redirectResponse: { status: 302 },
  });
  const { net } = modelOf([
    sent('1', 'https://a.example/'),
    redirected,
    received('1', 200),
    finished('1'),
  ]);
  equal(
    net.map(({ code, text, state }) => [code, text, state]),
    [
      [302, 'https://a.example/', 'done'],
      [200, 'https://a.example/b', 'done'],
    ],
  );
});

lists('a request that fails, and one without an answer', () => {
  const failed = event('Network.loadingFailed', { requestId: '1', errorText: 'net::ERR_FAILED' });
  const { net } = modelOf([
    sent('1', 'https://a.example/'),
    failed,
    sent('2', 'https://b.example'),
  ]);
  equal([net[0]?.state, net[0]?.note, net[0]?.code], ['failed', 'net::ERR_FAILED', undefined]);
  is(net[1]?.state, 'waiting');
});

lists('a command has its length, and an error its state', () => {
  const command: LogEntry = {
    method: 'Page.navigate',
    timestamp: 1_000,
    request: { timestamp: 1_000, params: { url: 'https://a.example/' } },
    response: { timestamp: 1_040, result: { error: { message: 'no' } } },
  };
  const [first] = modelOf([command]).cdp;
  equal(
    [first?.lengthMs, first?.state, first?.kind, first?.text],
    [40, 'failed', 'command', 'url: https://a.example/'],
  );
});

lists('lines of the console, of the browser, and exceptions', () => {
  const { console: lines } = modelOf([
    event('Runtime.consoleAPICalled', {
      type: 'warning',
      args: [{ type: 'string', value: '<b>' }, { type: 'number', value: 3 }, { description: 'x' }],
    }),
    event('Log.entryAdded', { entry: { level: 'error', text: 'refused' } }),
    event('Runtime.exceptionThrown', { exceptionDetails: { exception: { description: 'Oh' } } }),
  ]);
  equal(
    lines.map(({ name, text, state }) => [name, text, state]),
    [
      ['warning', '<b> 3 x', 'waiting'],
      ['error', 'refused', 'failed'],
      ['error', 'Oh', 'failed'],
    ],
  );
});

lists('entries of any shape are rows with short texts', () => {
  const odd = [
    {},
    { method: 4, timestamp: 'x', request: { params: null } },
    event('Network.requestWillBeSent', { request: 'no', requestId: {} }),
    event('Network.responseReceived', {}),
    event('Runtime.consoleAPICalled', { args: 'no' }),
    event('Log.entryAdded', { entry: { text: 'y'.repeat(1 << 20) } }),
  ] as LogEntry[];
  const { cdp, net, console: lines } = modelOf(odd);
  equal([cdp.length, net.length, lines.length], [6, 1, 2]);
  is(must(lines[1], 'the long line').text.length, 300);
});

const FILTERS: [filter: string, found: number[]][] = [
  ['', [0, 1, 2]],
  ['A.EXAMPLE', [0]],
  ['status:503', [1]],
  ['status:5xx', [1]],
  ['status:2xx', [0]],
  ['status:9xx', []],
  ['-status:5xx', [0, 2]],
  ['is:failed', [1]],
  ['method:get example', [0, 1, 2]],
  ['type:document', [0, 1, 2]],
  ['page:1', []],
  ['https://a.example/', [0]],
  ['(', []],
  ['-', []],
];

for (const [filter, found] of FILTERS) {
  lists(`the filter "${filter}" finds the rows ${found.join()}`, () => {
    const { net } = modelOf([
      sent('1', 'https://a.example/'),
      sent('2', 'https://b.example/'),
      sent('3', 'https://c.example/'),
      received('1', 200),
      received('2', 503),
    ]);
    equal(matching(net, filter), found);
  });
}

lists('an event that two clients received is one request', () => {
  const { net } = modelOf([
    sent('1', 'https://a.example/'),
    sent('1', 'https://a.example/'),
    received('1', 200),
    received('1', 200),
    finished('1'),
  ]);
  equal(
    net.map(({ code, state }) => [code, state]),
    [[200, 'done']],
  );
});

lists('moments of a run are navigations, requests that are slow or failed, console lines', () => {
  const script = (requestId: string) =>
    sent(requestId, `https://a.example/${requestId}.js`, { type: 'Script' });
  const slow = event('Network.loadingFinished', { requestId: '3', timestamp: 11.5 });
  const line = event('Runtime.consoleAPICalled', { type: 'error', args: [{ value: 'no price' }] });
  const model = modelOf([
    ...[sent('1', 'https://a.example/'), received('1', 200), finished('1')],
    ...[script('2'), finished('2'), script('3'), slow, script('4'), received('4', 500), line],
  ]);
  const { ticks, isCut } = ticksOf(model);
  equal(ticks.map(({ kind, list, index, state }) => `${kind} ${list} ${index} ${state}`).sort(), [
    'console console 0 failed',
    'navigation net 0 done',
    'request net 2 done',
    'request net 3 failed',
  ]);
  is(isCut, false);
  const many = ticksOf(modelOf(Array.from({ length: 400 }, () => line)));
  equal([many.ticks.length, many.isCut], [150, true]);
});

lists.run();

function event(method: string, params: object): LogEntry {
  return { method, pageId: 0, timestamp: 1_000, request: { timestamp: 1_000, params } };
}
