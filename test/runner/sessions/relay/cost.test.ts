/**
 * What a message may cost: for each limit in bytes the worst message of that size, and a bound on
 * the CPU time that the runner's thread spends on it. Parsed whole, these took 5 s and more.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLab, until } from '../../browser/lab.ts';
import { ask, openBench, say, TAIL } from '../log/recorder-bench.ts';
import { openRaw } from './raw.ts';

const cost = suite('runner/sessions/relay/cost');

/** A little less than a client's message may have. */
const MESSAGE_BYTES = (16 << 20) - 1_024;
/** Ours: several times what it takes on a machine that is busy with other things. */
const CPU_MAX_MS = 2_000;

function filled(head: string, unit: (index: number) => string, tail: string): string {
  const units: string[] = [];
  let bytes = head.length + tail.length;
  for (let at = 0; bytes < MESSAGE_BYTES; at += 1) {
    const text = unit(at);
    units.push(text);
    bytes += text.length + 1;
  }
  units.pop();
  return head + units.join(',') + tail;
}

const list = (method: string, unit: string): string =>
  filled(`{"id":7,"method":"${method}","params":{"x":[`, () => unit, ']}}');
const nested = '['.repeat(290) + ']'.repeat(290);

const WORST: [string, () => string][] = [
  ['members', () => filled('{"id":7,"method":"A.a","params":{', (at) => `"k${at}":1`, '}}')],
  [
    'members of a judged command',
    () =>
      filled(
        '{"id":7,"method":"Page.navigate","params":{"url":"data:,",',
        (at) => `"k${at}":1`,
        '}}',
      ),
  ],
  ['members of the message itself', () => filled('{"id":7,', (at) => `"k${at}":1`, '}')],
  ['short objects', () => list('A.a', '{"a":1}')],
  ['empty arrays', () => list('A.a', '[]')],
  ['nested arrays', () => list('A.a', nested)],
  ['numbers', () => list('A.a', '1')],
  ['numbers near the largest', () => list('A.a', '1e300')],
  ['escaped characters', () => list('A.a', `"${'\\u00e9'.repeat(2_700_000)}"`)],
  [
    'a key as long as the message',
    () => filled(`{"${'\\n'.repeat(8_000_000)}":1,"id":7,`, () => '"a":1', '}'),
  ],
  ['an id as long as the message', () => `{"id":${'1'.repeat(MESSAGE_BYTES - 99)},"method":"A.a"}`],
  ['a method as long as the message', () => `{"id":7,"method":"${'\\u0061'.repeat(2_700_000)}"}`],
  [
    'a URL as long as the message',
    () => `{"id":7,"method":"Page.navigate","params":{"url":"${'%\\t'.repeat(5_000_000)}"}}`,
  ],
  ['blanks', () => `{"id":7,"method":"A.a"${' '.repeat(MESSAGE_BYTES - 99)}}`],
  [
    'files',
    () =>
      filled(
        '{"id":7,"method":"DOM.setFileInputFiles","params":{"files":[',
        () => '"/tmp/.uploads/a"',
        ']}}',
      ),
  ],
];

cost('no message of a client blocks the runner', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  await raw.call('Browser.getVersion');
  for (const [what, worst] of WORST) {
    const text = Buffer.from(worst());
    const before = raw.said.length;
    const cpu = process.cpuUsage();
    raw.socket.send(text, { binary: false });
    await until(() => raw.said.length > before, `an answer to ${what}`);
    const { user, system } = process.cpuUsage(cpu);
    assert.match(raw.said.at(-1) ?? '', /^\{("id":7,)?"error":/, what);
    const ms = (user + system) / 1_000;
    assert.ok(ms < CPU_MAX_MS, `${what}: ${ms} ms`);
    if (process.env['COST']) console.log(what, ms);
  }
  raw.socket.close();
});

/** Just short enough to be kept whole. */
const KEPT_BYTES = (64 << 10) - 2_048;
const EVENTS = 200;

const repeated = (unit: string): string => unit.repeat(KEPT_BYTES / Buffer.byteLength(unit));
const headersOf = (count: number): string =>
  Array.from({ length: count }, (_, at) => `"h${at}":"v"`).join(',');
const requestOf = (headers: string): string =>
  `{"method":"Network.requestWillBeSent","params":{"request":{"cookie":1,"headers":{${headers}}}`;
const logOf = (args: string): string =>
  `{"method":"Runtime.consoleAPICalled","params":{"args":[${args}]`;

const EVENTS_OF_A_PAGE: [string, string][] = [
  ['many headers', requestOf(headersOf(4_500))],
  ['nested headers', requestOf(`"a":${'['.repeat(30_000)}${']'.repeat(30_000)}`)],
  ['a long header', requestOf(`"a":"${repeated('x')}"`)],
  ['escaped characters', requestOf(`"a":"${repeated('\\"')}"`)],
  ['a long line of the console', logOf(`{"value":"${repeated('\\u0000')}"}`)],
  ['many values in a line', logOf(`${repeated('{},')}0`)],
  ['nested values', logOf('['.repeat(30_000) + ']'.repeat(30_000))],
];

cost('no event of a page makes its log expensive', () => {
  for (const [what, head] of EVENTS_OF_A_PAGE) {
    const { recorder, lines } = openBench();
    const session = recorder.session(0);
    const names = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x-own-${at}`, '']));
    const params = { headers: names };
    ask(session, { id: 1, method: 'Network.setExtraHTTPHeaders', params });
    say(session, '{"id":1,"result":{}}');
    lines();
    const cpu = process.cpuUsage();
    for (let at = 0; at < EVENTS; at += 1) {
      say(session, `${head}}${TAIL}`);
      lines();
    }
    const { user, system } = process.cpuUsage(cpu);
    const each = (user + system) / 1_000 / EVENTS;
    assert.ok(each < 25, `${what}: ${each} ms`);
    if (process.env['COST']) console.log(what, each);
  }
});

cost.run();
