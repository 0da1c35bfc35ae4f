/** Secrets that the protocol log must not contain. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { REDACTED } from '../../../../runner/sessions/log/redaction.ts';
import { ask, openBench, say, TAIL } from './recorder-bench.ts';

const test = suite('runner/sessions/log/redaction');

/** Method, params, result; `S` must not be in the log, `V` must. */
const SECRETS: [method: string, params: object, result: object][] = [
  ['Network.setCookie', { name: 'V', value: 'S' }, {}],
  ['Network.setCookies', { cookies: [{ name: 'V', value: 'S' }] }, {}],
  ['Storage.setCookies', { cookies: [{ name: 'V', value: 'S' }] }, {}],
  ['Network.getCookies', {}, { cookies: [{ name: 'V', value: 'S', domain: 'a' }] }],
  ['Network.getAllCookies', {}, { cookies: [{ name: 'V', value: 'S' }] }],
  ['Storage.getCookies', { a: 'V' }, { cookies: [{ name: 'V', value: 'S' }] }],
  ['Network.setExtraHTTPHeaders', { headers: { V: 'S', 'x-other': 'S' } }, {}],
  ['Network.getRequestPostData', { requestId: 'V' }, { postData: 'S' }],
  [
    'Fetch.continueWithAuth',
    { authChallengeResponse: { response: 'V', username: 'S', password: 'S' } },
    {},
  ],
  ['Fetch.continueRequest', { headers: [{ name: 'V', value: 'S' }], postData: 'S' }, {}],
  ['Fetch.fulfillRequest', { responseHeaders: [{ name: 'V', value: 'S' }], body: 'S' }, {}],
  ['Input.insertText', { text: 'S', other: 'V' }, {}],
  ['Input.dispatchKeyEvent', { type: 'V', text: 'S', key: 'S', code: 'KeyS' }, {}],
  ['DOMStorage.setDOMStorageItem', { key: 'V', value: 'S' }, {}],
  ['WebAuthn.addCredential', { credential: { rpId: 'V', privateKey: 'S' } }, {}],
];

for (const [method, params, result] of SECRETS) {
  test(`${method} does not show its secret`, () => {
    const { recorder, logged } = openBench();
    const session = recorder.session(0);
    const text = (value: object): string =>
      JSON.stringify(value).replaceAll('"S"', '"the secret"').replaceAll('"V"', '"visible"');
    ask(session, { id: 4, method, params: JSON.parse(text(params)) });
    say(session, `{"id":4,"result":${text(result)}${TAIL}`);
    const [entry] = logged();
    assert.not(entry?.line.includes('the secret'), entry?.line);
    assert.not(entry?.line.includes('KeyS'));
    assert.ok(entry?.line.includes('visible') || entry?.line.includes('"V"'), entry?.line);
    assert.ok(entry?.line.includes(REDACTED));
    assert.is(JSON.parse(entry?.request?.rawBody ?? '').method, method);
  });
}

test('with more header names than remembered, events show no header', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  for (const first of [0, 60]) {
    const names = Array.from({ length: 60 }, (_, at) => [`x-own-${first + at}`, 'hidden']);
    const params = { headers: Object.fromEntries(names) };
    ask(session, { id: 1, method: 'Network.setExtraHTTPHeaders', params });
    say(session, '{"id":1,"result":{}}');
  }
  const request = { url: 'http://a/', headers: { 'x-own-3': 'hidden', 'x-own-119': 'hidden' } };
  const event = { method: 'Network.requestWillBeSent', params: { request } };
  say(session, JSON.stringify(event).slice(0, -1) + TAIL);
  assert.not(logged().some(({ line }) => line.includes('"hidden"') || line.includes('hidden\\"')));
});

test('a request of a page shows neither its credentials nor its body', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  const headers = { 'X-Own': 'hidden', Authorization: 'hidden', Accept: 'shown' };
  ask(session, {
    id: 1,
    method: 'Network.setExtraHTTPHeaders',
    params: { headers: { 'x-own': 'hidden' } },
  });
  say(session, '{"id":1,"result":{}}');
  const request = {
    url: 'http://a/',
    headers,
    postData: 'hidden',
    postDataEntries: [{ bytes: 'hidden' }],
  };
  say(session, JSON.stringify({ method: 'Network.requestWillBeSent', params: { request } }));
  const response = {
    url: 'shown',
    headers: { 'Set-Cookie': 'hidden' },
    requestHeadersText: 'hidden',
  };
  say(session, JSON.stringify({ method: 'Network.responseReceived', params: { response } }));
  const plain = { response: { url: 'shown', headers: { 'content-type': 'text/html' } } };
  say(session, JSON.stringify({ method: 'Network.responseReceived', params: plain }));
  const all = logged();
  for (const { line } of all) assert.not(line.includes('hidden'), line);
  assert.is(all.length, 4);
  assert.equal(all[1]?.request?.params?.['request'], {
    ...request,
    headers: { 'X-Own': REDACTED, Authorization: REDACTED, Accept: 'shown' },
    postData: REDACTED,
    postDataEntries: [{ bytes: REDACTED }],
  });
  assert.equal(all[3]?.request?.params, plain);
});

test('a message nested too deep for redaction is left out', () => {
  const { recorder, logged } = openBench();
  const session = recorder.session(0);
  const deep = `${'['.repeat(2e4)}${']'.repeat(2e4)}`;
  ask(session, { id: 1, method: 'Network.getCookies' });
  say(session, `{"id":1,"result":{"cookies":${deep}}${TAIL}`);
  const event = `{"url":"x","headers":{"cookie":"hidden"},"deep":${deep}}`;
  say(session, `{"method":"Network.requestWillBeSent","params":{"request":${event}}${TAIL}`);
  const all = logged();
  assert.is(all.length, 2);
  for (const { line } of all) {
    assert.not(line.includes('hidden'));
    assert.match(line, /nested too deep/);
  }
});

test.run();
