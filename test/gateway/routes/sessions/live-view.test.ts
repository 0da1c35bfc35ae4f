/** The page of a live view and its links: usable in any frame, by anyone with a link, and safe. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { LocateSessionRequest } from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Call } from '../../../../proto/rpc/local.ts';
import { ask, openGateway } from '../../sessions/runner.ts';

const test = suite('gateway/routes/sessions/live-view');

const NO_KEY = { 'x-svc-api-key': [] as string[] };

/** A core with one valid token. */
function openLive() {
  const locateSession = async ({ credential }: LocateSessionRequest, call: Call) => {
    assert.is(call.metadata['authorization'], 'Bearer a-token');
    const token = credential?.value;
    if (token === 'over') throw new Fault('SESSION_ENDED', 'The session has ended.');
    if (token === 'late') throw new Fault('URL_EXPIRED', 'The live view has expired.');
    if (token !== 'good') throw new Fault('SIGNING_KEY_INVALID', 'Invalid signing key.');
    return {
      sessionId: 's',
      status: 'RUNNING' as const,
      address: 'unix:/nowhere',
      signingKey: 'k',
      expiresAt: new Date(0),
      apiKeyId: '',
      handoffId: '',
      runnerId: '',
      isReadOnly: false,
    };
  };
  const getLiveView = async () => ({
    debuggerUrl: '/live?token=good',
    debuggerFullscreenUrl: '/live?token=good&navbar=false',
    wsUrl: '/connect?signingKey=good',
    pages: [],
  });
  return openGateway({ sessions: { locateSession, getLiveView } });
}

test('the page and its files need no key, and any site may embed them', async () => {
  await using gateway = await openLive();
  const page = await ask(gateway.url, 'GET', '/live?token=good', { headers: NO_KEY });
  assert.is(page.status, 200);
  const files = [...page.text.matchAll(/(?:src|href)="(live\/[^"]+)"/g)].map((one) => one[1]);
  assert.is(files.length, 2);
  for (const path of ['live?token=good', ...files]) {
    const { status, headers } = await ask(gateway.url, 'GET', `/${path}`, { headers: NO_KEY });
    assert.is(status, 200, path);
    assert.is(headers['x-frame-options'], undefined);
    assert.match(String(headers['content-security-policy']), /default-src 'none'/);
    assert.match(String(headers['content-security-policy']), /frame-ancestors \*/);
    assert.not.match(String(headers['content-security-policy']), /unsafe|script-src [^;]*\*/);
    assert.is(headers['access-control-allow-origin'], '*');
    assert.is(headers['referrer-policy'], 'no-referrer');
    assert.is(headers['x-content-type-options'], 'nosniff');
  }
});

test('every file that a script of the page imports is there', async () => {
  await using gateway = await openLive();
  const seen = new Set<string>();
  const visit = async (name: string): Promise<void> => {
    if (seen.has(name)) return;
    seen.add(name);
    const file = await ask(gateway.url, 'GET', `/live/${name}`, { headers: NO_KEY });
    assert.is(file.status, 200, name);
    assert.match(String(file.headers['content-type']), /^text\/javascript/);
    const imports = [...file.text.matchAll(/from '\.\/([^']+)'/g)];
    for (const [, next] of imports) await visit(String(next));
  };
  await visit('viewer.js');
  assert.ok(seen.size > 4);
});

test('no other file is served there, and no other answer has those headers', async () => {
  await using gateway = await openLive();
  for (const path of ['/live/', '/live/none.js', '/live/..%2fapp.ts', '/live/index.html']) {
    const { status } = await ask(gateway.url, 'GET', path, { headers: NO_KEY });
    assert.is(status, 404, path);
  }
  assert.is((await ask(gateway.url, 'POST', '/live', { headers: NO_KEY })).status, 405);
  const { headers } = await ask(gateway.url, 'GET', '/openapi.json', { headers: NO_KEY });
  assert.is(headers['access-control-allow-origin'], undefined);
});

const REFUSALS: [token: string, status: number][] = [
  ['over', 410],
  ['late', 410],
  ['other', 401],
  ['', 401],
];

test('the response to an expired link has the reason, for the page and for people', async () => {
  await using gateway = await openLive();
  for (const [token, status] of REFUSALS) {
    const told = await ask(gateway.url, 'GET', `/live/status?token=${token}`, { headers: NO_KEY });
    assert.is(told.status, status, token);
    assert.is((told.json as { statusCode: number }).statusCode, status);
    assert.is(told.headers['access-control-allow-origin'], '*');
    const page = await ask(gateway.url, 'GET', `/live?token=${token}`, { headers: NO_KEY });
    assert.is(page.status, status);
    assert.match(page.text, /<canvas/, 'the page shows why, and tells the window around it');
    const headers = { ...NO_KEY, accept: 'application/json' };
    const plain = await ask(gateway.url, 'GET', `/live?token=${token}`, { headers });
    assert.is((plain.json as { statusCode: number }).statusCode, status);
  }
  const good = await ask(gateway.url, 'GET', '/live/status?token=good', { headers: NO_KEY });
  assert.equal(good.json, { status: 'RUNNING', expiresAt: '1970-01-01T00:00:00.000Z' });
});

test('the links are absolute; without the runner the list of tabs is empty', async () => {
  await using gateway = await openLive();
  const id = '0190b0a0-0000-7000-8000-000000000000';
  const answer = await ask(gateway.url, 'GET', `/v1/sessions/${id}/debug?expiresIn=60`);
  assert.equal(answer.json, {
    debuggerUrl: `${gateway.url}/live?token=good`,
    debuggerFullscreenUrl: `${gateway.url}/live?token=good&navbar=false`,
    wsUrl: `${gateway.url.replace('http', 'ws')}/connect?signingKey=good`,
    pages: [],
  });
  const wrong = await ask(gateway.url, 'GET', `/v1/sessions/${id}/debug?expiresIn=soon`);
  assert.is(wrong.status, 400);
  assert.match(wrong.text, /expiresIn/);
  const keyless = await ask(gateway.url, 'GET', `/v1/sessions/${id}/debug`, { headers: NO_KEY });
  assert.is(keyless.status, 401);
});

test.run();
