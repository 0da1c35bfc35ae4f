/**
 * What the relay answers by itself is what Chrome answers, member by member: each message is sent
 * to a plain Chrome and to a session.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPlainChrome } from '../../../support/runner/plain-chrome.ts';
import { openLab, until } from '../../browser/lab.ts';
import { openRaw, type Raw } from './raw.ts';

const parity = suite('runner/sessions/relay/parity');

const VERSION = '"method":"Browser.getVersion"';
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const objects = (levels: number): string => '{"a":'.repeat(levels) + 1 + '}'.repeat(levels);
const inParams = (json: string): string => `{"id":9,${VERSION},"params":{"x":${json}}}`;

const IDS = [
  ...['0', '-1', '-0', '1.0', '1e2', '1E0', '0.1e1', '1073741824', '1073741825', '2147483647'],
  ...['-2147483648', '2147483648', '-2147483649', '4294967296', '9007199254740993', '1.5'],
  ...['"1"', 'null', 'true', '[]', '{}', '01', '1e400', '-', '+1', '.5', '5.', 'NaN'],
].map((id) => `{"id":${id},${VERSION}}`);

const ENVELOPES = [
  ...['', ' ', '{}', '[]', '5', '"x"', 'null', 'hello', '{', '{"id"', '{"id":', '{"id":5'],
  ...[`{${VERSION}}`, '{"id":5}', '{"id":5,"method":7}', '{"id":5,"method":null}'],
  ...['{"id":5,"method":""}', '{"id":5,"method":"foo"}', '{"id":5,"method":"Foo.bar"}'],
  ...['{"id":5,"method":"Browser.bar"}', '{"id":5,"method":"Browsé.get"}', `{"x":1,"id":5}`],
  ...['{"id":5,"method":"Browser\\u002egetVersion"}', `{"\\u0069d":5,${VERSION}}`],
  ...[`{"id":5,${VERSION},"foo":1}`, `{"foo":1,"id":5,${VERSION}}`, `{"id":5,"é":1,${VERSION}}`],
  ...['[]', 'null', '3', '"x"', 'true'].map((params) => `{"id":5,${VERSION},"params":${params}}`),
  ...['5', 'null', '""', '{}', '"ABC"', '"é"'].map((id) => `{"id":5,${VERSION},"sessionId":${id}}`),
  ...['{"id":5,"sessionId":"ABC"}', '{"method":"x","sessionId":"ABC"}'],
  ...['{"id":"q","method":"x","sessionId":"ABC"}', '{"id":5,"method":"x","sessionId":"ABC","a":1}'],
];

const SYNTAX = [
  ...[`{"id":5,${VERSION}} x`, ` \n{"id":5,${VERSION}} \t\r\n`, `\ufeff{"id":5,${VERSION}}`],
  ...[`{"id":5,${VERSION},}`, `{"id":5,/*x*/${VERSION}}`, `{"id":5,//x\n${VERSION}}`],
  ...[`{'id':5,${VERSION}}`, `{"id"5,${VERSION}}`, `{"id":5 ${VERSION}}`, `{,"id":5}`, '{"a":}'],
  ...[`{"id":5,${VERSION}`, `{"id":5,${VERSION},"params":{"a":"`, '{"id":\u00a05}', '{5:1}', '{"a'],
  ...['[1,]', '[1 2]', '[,]', '[', '[1', '{"a":1,}', 'True', 'undefined', 'nxll', 't', '01', '-'],
  ...['1.', '1e', '1e+', '"\\q"', '"\\u00g0"', '"\\u00', '1e999', '"\\ud800"', '{1:2}', ']', ':'],
].map((json, index) => (index < 16 ? json : inParams(json)));

const DEPTHS = [
  ...[298, 299, 300, 301, 5_000].map((levels) => inParams(nested(levels))),
  ...[297, 298, 299, 300, 5_000].map((levels) => inParams(objects(levels))),
  inParams(`[1,${nested(299)}]`),
  inParams(`[ ${nested(299)}]`),
];

/** On a session of the first page. */
const ON_PAGE = [
  '{"id":5,"method":"Foo.bar"',
  '{"id":"x","method":"Foo.bar"',
  '{"method":"Foo.bar"',
  '{"id":5',
  '{"id":5,"method":"Page.navigate","foo":1',
  ...['{}', '[]', 'null', '{"url":5}'].map((params) => {
    return `{"id":5,"method":"Page.navigate","params":${params}`;
  }),
  ...['not a url', 'http://', 'http://[', '', '//x', 'foo', 'https:', '\\u0000'].map((url) => {
    return `{"id":5,"method":"Page.navigate","params":{"url":"${url}"}`;
  }),
  '{"id":5,"method":"Target.detachFromTarget","params":{"sessionId":"ABC"}',
  '{"id":5,"method":"Target.detachFromTarget","params":{}',
];

const AT_ROOT = [
  '{"id":5,"method":"Target.detachFromTarget","params":{"sessionId":"ABC"}}',
  '{"id":5,"method":"Target.detachFromTarget","params":{}}',
  '{"id":5,"method":"Target.detachFromTarget"}',
  '{"id":5,"method":"Target.attachToTarget","params":{"targetId":"ABC","flatten":true}}',
  '{"id":5,"method":"Target.createTarget","params":{"url":"http://["}}',
  '{"id":5,"method":"Target.createTarget","params":{"url":5}}',
  '{"id":5,"method":"Target.createTarget","params":[]}',
];

/** What comes back first; events of other sessions are not sent to a client that enabled none. */
async function answerTo(raw: Raw, text: string): Promise<string> {
  const before = raw.said.length;
  raw.socket.send(text);
  await until(() => raw.said.length > before, `an answer to ${text.slice(0, 200)}`);
  return raw.said[before] ?? '';
}

/** Versions and ids of this Chrome apart; the position of a wrong key is one in JSON here. */
function compared(answer: string): unknown {
  return JSON.parse(answer, (key, value) => {
    if (key === 'result') return Object.keys(value).sort();
    if (key === 'sessionId') return 'a session';
    return key === 'message' ? String(value).replace(/^(CBOR.*) \d+$/, '$1') : value;
  });
}

parity('the relay responds to every message as Chrome does', async () => {
  await using plain = await openPlainChrome();
  await using lab = await openLab({ allow: [] });
  const [straight, relayed] = await Promise.all([openRaw(plain.url), openRaw(lab.connectUrl)]);
  const pages = [await straight.attach(), await relayed.attach()];
  const same = async (first: string, second = first): Promise<void> => {
    const [theirs, ours] = [await answerTo(straight, first), await answerTo(relayed, second)];
    assert.equal(compared(ours), compared(theirs), first.slice(0, 200));
    assert.is(ours.includes('"sessionId"'), theirs.includes('"sessionId"'), first.slice(0, 200));
  };
  const repeated = ['"id":6', '"method":"A.a"', '"params":{}', '"sessionId":"ABC"'].map(
    (again) => `{"id":5,${VERSION},"params":{},"sessionId":"ABC",${again}}`,
  );
  for (const text of [...IDS, ...ENVELOPES, ...SYNTAX, ...DEPTHS, ...repeated, ...AT_ROOT]) {
    await same(text);
  }
  for (const head of ON_PAGE) {
    const [first = '', second = ''] = pages.map((id) => `${head},"sessionId":"${id}"}`);
    await same(first, second);
  }
  for (const [raw, sessionId] of [[straight, pages[0]] as const, [relayed, pages[1]] as const]) {
    await raw.call('Target.detachFromTarget', { sessionId });
  }
  const [first = '', second = ''] = pages.map(
    (id) => `{"id":7,"method":"A.a","sessionId":"${id}"}`,
  );
  await same(first, second); // a session that has ended
  straight.socket.close();
  relayed.socket.close();
});

parity('commands on a session that ends receive the responses of Chrome', async () => {
  await using plain = await openPlainChrome();
  await using lab = await openLab({ allow: [] });
  const outcomes = await Promise.all([plain.url, lab.connectUrl].map(raceOnce));
  const [theirs = [], ours = []] = outcomes;
  assert.is(theirs.length, 50);
  assert.equal(ours, theirs);
});

/** Fifty commands behind one that ends their session: all answers, without the ids of sessions. */
async function raceOnce(url: string): Promise<string[]> {
  const raw = await openRaw(url);
  const sessionId = await raw.attach();
  const before = raw.said.length;
  raw.socket.send(
    JSON.stringify({ id: 500, method: 'Target.detachFromTarget', params: { sessionId } }),
  );
  for (let id = 2 ** 30; id < 2 ** 30 + 50; id += 1) {
    raw.socket.send(JSON.stringify({ id, method: 'Runtime.evaluate', params: {}, sessionId }));
  }
  const answers = () => raw.said.slice(before).filter((text) => /"id":1073741\d/.test(text));
  await until(() => answers().length === 50, 'all answers');
  raw.socket.close();
  return answers().map((text) => text.replaceAll(sessionId, 'S'));
}

parity('a binary message ends its client alone, with a reason', async () => {
  await using lab = await openLab({ allow: [] });
  const [one, other] = await Promise.all([openRaw(lab.connectUrl), openRaw(lab.connectUrl)]);
  one.socket.send(Buffer.from(`{"id":1,${VERSION}}`), { binary: true });
  assert.is(await one.closed, 1003);
  assert.is(one.why(), 'a message is text');
  await other.call('Browser.getVersion');
  other.socket.close();
});

parity.run();
