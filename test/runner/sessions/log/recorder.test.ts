/** The entries that the protocol log makes of a relay's messages. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ask, type Logged, openBench, SESSION, say, TAIL } from './recorder-bench.ts';

const test = suite('runner/sessions/log/recorder');

test('a command and its response are one entry, with the text that was sent', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(3);
  const command = { id: 7, method: 'Page.navigate', params: { url: 'http://a/é' } };
  ask(session, command, 10);
  assert.equal(logged(), []);
  const answer = `{"id":7,"result":{"frameId":"F1","loaderId":"L1"}${TAIL}`;
  say(session, answer, 12);
  const [entry] = logged();
  const { line: _, ...log } = entry as Logged;
  assert.equal(log, {
    method: 'Page.navigate',
    pageId: 3,
    sessionId: SESSION,
    timestamp: 12,
    frameId: 'F1',
    loaderId: 'L1',
    request: { timestamp: 10, params: { url: 'http://a/é' }, rawBody: JSON.stringify(command) },
    response: { timestamp: 12, result: { frameId: 'F1', loaderId: 'L1' }, rawBody: answer },
  });
});

test('entries are in the order of completion; a command without a response is the last', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  ask(session, { id: 1, method: 'Runtime.evaluate' });
  ask(session, { id: 2, method: 'DOM.enable' });
  ask(session, { id: 3, method: 'Never.answered', params: { a: 1 } });
  say(session, '{"id":2,"result":{}}');
  say(session, '{"id":1,"result":{}}');
  say(session, '{"id":9,"result":{}}');
  recorder.end();
  const all = logged();
  assert.equal(
    all.map(({ method }) => method),
    ['DOM.enable', 'Runtime.evaluate', 'Never.answered'],
  );
  assert.is(all[2]?.response, undefined);
  assert.equal(all[2]?.request?.params, { a: 1 });
});

test('a response belongs to the session of its command', () => {
  const { recorder, logged } = openBench();
  const [one, two] = [recorder.session(0), recorder.session(1)];
  ask(one, { id: 1, method: 'Page.a' });
  ask(two, { id: 1, method: 'Page.b' });
  say(two, '{"id":1,"result":{}}');
  assert.equal(
    logged().map(({ method, pageId }) => [method, pageId]),
    [['Page.b', 1]],
  );
});

test('an error is the result', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  const error = { code: -32000, message: 'Cannot "navigate"' };
  for (const text of [
    `{"id":1,"error":${JSON.stringify(error)}${TAIL}`,
    `{"error":${JSON.stringify(error)},"id":1}`,
  ]) {
    ask(session, { id: 1, method: 'Page.navigate' });
    say(session, text);
    const [entry] = logged();
    assert.equal(entry?.response?.result, { error });
    assert.is(entry?.response?.rawBody, text);
  }
});

test('events about pages are kept, bulk events are not', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(2);
  const frame = '{"id":"F","loaderId":"L"}';
  const kept = `{"method":"Page.frameNavigated","params":{"frame":${frame}}${TAIL}`;
  say(session, kept, 5);
  for (const method of [
    'Network.dataReceived',
    'Network.requestWillBeSentExtraInfo',
    'Runtime.executionContextCreated',
    'Debugger.scriptParsed',
    'DOM.setChildNodes',
    'Page.screencastFrame',
    'constructor',
  ]) {
    say(session, `{"method":"${method}","params":{}${TAIL}`);
  }
  say(session, `{"method":"Runtime.consoleAPICalled","params":{"type":"log","args":[]}}`);
  const [first, second, ...more] = logged();
  assert.is(second?.method, 'Runtime.consoleAPICalled');
  assert.equal(more, []);
  const { line: _, ...log } = first as Logged;
  assert.equal(log, {
    method: 'Page.frameNavigated',
    pageId: 2,
    sessionId: SESSION,
    timestamp: 5,
    request: { timestamp: 5, params: { frame: { id: 'F', loaderId: 'L' } }, rawBody: kept },
    response: undefined,
    frameId: undefined,
    loaderId: 'L',
  });
});

test('a long message is truncated and stays a valid entry', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  const long = 'x'.repeat(100_000);
  ask(session, { id: 1, method: 'Page.captureScreenshot' });
  say(session, `{"id":1,"result":{"data":"${long}"}${TAIL}`);
  ask(session, { id: 2, method: 'Runtime.evaluate', params: { expression: long } });
  say(session, '{"id":2,"result":{"result":{"type":"string","value":"é"}}}');
  say(session, `{"method":"Runtime.consoleAPICalled","params":{"args":["${long}"]}}`);
  ask(session, { id: 3, method: 'Input.insertText', params: { text: long } });
  say(session, '{"id":3,"result":{}}');
  const [shot, script, event, typed] = logged();
  assert.match(String(shot?.response?.result?.['truncated']), /^1000\d\d bytes/);
  assert.match(String(shot?.response?.result?.['head']), /^\{"id":1,"result":\{"data":"xxx/);
  assert.equal(Object.keys(JSON.parse(shot?.response?.rawBody ?? '')), ['id', 'result']);
  assert.match(String(script?.request?.params?.['head']), /"expression":"xxx/);
  assert.equal(Object.keys(event?.request?.params ?? {}), ['truncated', 'head']);
  assert.equal(Object.keys(typed?.request?.params ?? {}), ['truncated']);
  for (const entry of [shot, script, event, typed]) assert.ok((entry?.line.length ?? 0) < 5_000);
});

test('an id with special characters is not an id', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  const params = { frameId: 'a","method":"Forged', loaderId: '', text: '"frameId":"x"' };
  ask(session, { id: 1, method: 'Page.a', params });
  say(session, '{"id":1,"result":{}}');
  const [entry] = logged();
  assert.is(entry?.method, 'Page.a');
  assert.is(entry?.frameId, undefined);
  assert.is(entry?.loaderId, undefined);
});

test('a log that is not taken stays within its limit and reports lost entries', () => {
  const { recorder, told } = openBench();
  const session = recorder.session(0);
  const event = `{"method":"Page.a","params":{"text":"${'x'.repeat(50_000)}"}}`;
  for (let n = 0; n < 1_000; n++) say(session, event, n);
  const [count = 0, bytes = 0] = told.at(-1) ?? [];
  assert.ok(bytes < 9 << 20, `${bytes} bytes`);
  const taken = recorder.take(5, 1 << 30);
  assert.is(taken.length, 5);
  assert.is(taken[0]?.request.at, 0);
  assert.ok(recorder.take(10_000, 60_000).length <= 3);
  const rest = recorder.take(10_000, 1 << 30);
  assert.match(rest.at(-1)?.request.text ?? '', new RegExp(`${1_000 - count} entries`));
});

test('commands without responses stay within their limit', () => {
  const { recorder } = openBench();
  const session = recorder.session(0);
  const params = { text: 'x'.repeat(50_000) };
  for (let id = 1; id <= 6_000; id++) ask(session, { id, method: 'Runtime.evaluate', params });
  assert.ok(recorder.ready > 0);
  recorder.end();
  const all = recorder.take(10_000, 1 << 30);
  const bytes = all.reduce((sum, { request }) => sum + request.text.length, 0);
  assert.ok(bytes < 30 << 20, `${bytes} bytes`);
});

test('a warning is an entry, and a stopped recorder records nothing', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  recorder.warn('captchas are not solved here', 9);
  const [entry] = logged();
  assert.equal(
    [entry?.method, entry?.pageId, entry?.timestamp, entry?.request?.params],
    ['Tabern.warning', 0, 9, { message: 'captchas are not solved here' }],
  );
  ask(session, { id: 1, method: 'Page.a' });
  recorder.stop();
  say(session, '{"id":1,"result":{}}');
  say(session, '{"method":"Page.b","params":{}}');
  assert.equal(logged(), []);
});

test.run();
