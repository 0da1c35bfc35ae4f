/** The commands against a real HTTP server: their requests, output and refusals. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../../../proto/common/env.ts';
import { logText, openApi } from '../../../runner/cli/api.ts';
import { openCli } from '../../../runner/cli/config.ts';
import { invoke } from '../../../runner/cli/invoke.ts';
import { logs } from '../../../runner/cli/logs.ts';
import { act } from '../../../runner/cli/objects.ts';
import { errorOf } from '../../support/fault.ts';
import { selfSigned } from '../../support/servers/certificates.ts';
import { FUNCTION, ID, KEY, LINE, service, terminal } from '../../support/servers/scripted.ts';

const cli = suite('runner/cli/api');

cli('invoke sends params, finds a function by name, prints results and exits 0', async () => {
  const invocation = { id: 'i-1', status: 'COMPLETED', results: { title: 'T' } };
  const [url, ended] = ['/v1/functions/invocations/i-1', [{ json: invocation }]];
  await using remote = await service({
    'GET /v1/functions?offset=0&limit=100': { json: { data: [FUNCTION] } },
    [`POST /v1/functions/${ID}/invoke`]: { status: 202, json: { id: 'i-1', status: 'PENDING' } },
    [`GET ${url}?wait=20`]: [{ json: { status: 'RUNNING' } }, ...ended],
    [`GET ${url}/logs`]: { json: { logs: [LINE] } },
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl);
  assert.is(await invoke('title', { params: '{"url":"http://x"}' }, opened), 0);
  assert.equal(JSON.parse(out.join('\n')), { title: 'T' });
  assert.is(said.length, 2);
  const sent = remote.seen.find(({ method }) => method === 'POST');
  assert.equal(JSON.parse(String(sent?.body)), { params: { url: 'http://x' } });
});

cli('a failed invocation prints its cause and exits 1', async () => {
  const cause = { code: 'WORKLOAD_ERROR', message: 'RangeError: asked to\u001b[2J fail' };
  await using remote = await service({
    [`POST /v1/functions/${ID}/invoke`]: { status: 202, json: { id: 'i-1' } },
    'GET /v1/functions/invocations/i-1?wait=20': { json: { status: 'FAILED', cause } },
    'GET /v1/functions/invocations/i-1/logs': { json: { logs: [] } },
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl);
  assert.is(await invoke(ID, {}, opened), 1);
  assert.equal(out, []);
  assert.match(said.join(), 'WORKLOAD_ERROR: RangeError: asked to\u{fffd}[2J fail');
});

cli('following a log ends when the log fails for good, though the status is readable', async () => {
  const path = '/v1/functions/invocations/i-1';
  const down = { status: 503, json: { message: 'The service is not reachable.' } };
  await using remote = await service({
    [`GET ${path}`]: { json: { id: 'i-1', status: 'RUNNING' } },
    [`GET ${path}/logs`]: down,
  });
  const { cli: opened } = terminal(remote.baseUrl);
  const error = await errorOf(logs('i-1', { follow: true }, opened));
  assert.match((error as Error).message, /503.*not reachable/);
  const tries = remote.seen.filter(({ url }) => url === `${path}/logs`).length;
  assert.ok(tries > 1 && tries < 100, `${tries} tries`);
});

cli('a list that is paged by offset is read to its end', async () => {
  const rows = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => ({ id: `f-${from + index}`, name: 'f' }));
  await using remote = await service({
    'GET /v1/functions?offset=0&limit=100': { json: { data: rows(100), total: 130 } },
    'GET /v1/functions?offset=100&limit=100': { json: { data: rows(30, 100), total: 130 } },
  });
  const { cli: opened, out } = terminal(remote.baseUrl);
  const given = { words: [], options: { json: true }, cli: opened };
  assert.is(await act('functions list', given), 0);
  const ids = JSON.parse(out.join()).map(({ id }: { id: string }) => id);
  assert.equal([ids.length, ids[0], ids.at(-1)], [130, 'f-0', 'f-129']);
  assert.is(remote.seen.length, 2);
});

cli('cancel ends an invocation and prints its status', async () => {
  const invocation = { id: ID, status: 'FAILED', cause: { code: 'WORKLOAD_ERROR' } };
  const path = `POST /v1/functions/invocations/${ID}/cancel`;
  await using remote = await service({ [path]: { json: invocation } });
  const people = terminal(remote.baseUrl);
  const cancel = (id: string, screen: typeof people, options = {}) =>
    act('cancel', { words: [id], options, cli: screen.cli });
  assert.is(await cancel(ID, people), 0);
  assert.equal(people.out, ['FAILED']);
  const program = terminal(remote.baseUrl);
  assert.is(await cancel(ID, program, { json: true }), 0);
  assert.equal(JSON.parse(program.out.join()), invocation);
  const error = await errorOf(cancel('of-nobody', people));
  assert.match((error as Error).message, /^404 /);
});

cli('logs --follow prints each line once, until the invocation ends', async () => {
  const path = `/v1/functions/invocations/${ID}`;
  const more = { ...LINE, message: 'more' };
  await using remote = await service({
    [`GET ${path}`]: ['PENDING', 'RUNNING', 'COMPLETED'].map((status) => ({ json: { status } })),
    [`GET ${path}/logs`]: [[], [LINE], [LINE, more]].map((logs) => ({ json: { logs } })),
  });
  const people = terminal(remote.baseUrl);
  assert.is(await logs(ID, { follow: true }, people.cli), 0);
  assert.equal(people.out, [logText(LINE), logText(more)]);
  assert.is(remote.seen.length, 6);
});

cli('params that are not a JSON object are refused before a request is sent', async () => {
  await using remote = await service({});
  for (const params of ['[1]', '"a"', 'null', '{']) {
    const error = await errorOf(invoke(ID, { params }, terminal(remote.baseUrl).cli));
    assert.instance(error, ConfigError); // a wrong call: exits 2
    assert.match((error as Error).message, /params/);
  }
  assert.equal(remote.seen, []);
});

cli('control characters of a log line are replaced', async () => {
  const lines = [LINE, { message: 'a\u001b]0;b\u0007\tc', timestamp: 1_000 }];
  await using remote = await service({
    [`GET /v1/functions/builds/${ID}/logs`]: { json: { logs: lines } },
  });
  const { cli: opened, out } = terminal(remote.baseUrl);
  assert.is(await logs(ID, { build: true }, opened), 0);
  assert.equal(out, [
    '00:00:00.000 info unpacked 3 entries',
    '00:00:01.000 log a\u{fffd}]0;b\u{fffd}\tc',
  ]);
  assert.is(logText(LINE), out[0]);
});

cli('any text is a level of a log line', () => {
  for (const level of ['constructor', '__proto__', 'error\u202e']) {
    const shown = level.replace('\u202e', '\u{fffd}');
    assert.is(logText({ ...LINE, level }), `00:00:00.000 ${shown} ${LINE.message}`);
  }
});

cli('an error has the message of the service and never the key', async () => {
  await using remote = await service({
    'GET /bad': { status: 401, json: { statusCode: 401, message: 'Invalid API key.' } },
    'GET /page': { text: '<html>' },
    'GET /gone': { status: 502, text: 'no JSON' },
  });
  const api = openApi(terminal(remote.baseUrl).cli);
  const said = async (path: string) => ((await errorOf(api.get(path))) as Error).message;
  const keys = 'there, `tabern keys list` shows each key and its project.';
  assert.is(await said('/bad'), `401 Invalid API key. The service is ${remote.baseUrl}; ${keys}`);
  assert.match(await said('/page'), 'the answer is not JSON');
  assert.match(await said('/gone'), '502 Bad Gateway');
  const dead = openApi({ ...terminal('http://127.0.0.1:9').cli });
  const unreached = ((await errorOf(dead.get('/'))) as Error).message;
  assert.match(unreached, /^cannot reach http:\/\/127\.0\.0\.1:9 \(.+\); is the service running/);
  assert.not.match(unreached, KEY);
});

cli('a service with a certificate that is not trusted names the setting', async () => {
  const server = createServer(await selfSigned());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const api = openApi({ ...terminal(`https://127.0.0.1:${port}`).cli });
  const message = ((await errorOf(api.get('/'))) as Error).message;
  assert.match(message, 'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to its file');
  server.close();
});

cli('a redirect is not followed and does not receive the key', async () => {
  await using other = await service({ 'GET /x': { json: {} } });
  const location = `${other.baseUrl}/x`;
  await using remote = await service({
    'GET /x': { status: 302, headers: { location }, text: '' },
  });
  const error = await errorOf(openApi(terminal(remote.baseUrl).cli).get('/x'));
  assert.match((error as Error).message, 'answered with a redirect');
  assert.equal(other.seen, []);
});

cli('options win over variables; an error names the setting to change', () => {
  const env = { TABERN_API_KEY: 'from-env', TABERN_BASE_URL: 'https://a.example/base/' };
  assert.is(openCli({}, env).baseUrl, 'https://a.example/base');
  assert.is(openCli({ apiKey: 'given', baseUrl: 'http://b' }, env).apiKey, 'given');
  assert.is(openCli({}, { TABERN_API_KEY: 'k', TABERN_PORT: '5' }).baseUrl, 'http://127.0.0.1:5');
  assert.is(
    openCli({}, { TABERN_API_KEY: 'k', TABERN_HOST: '::' }).baseUrl,
    'http://127.0.0.1:4747',
  );
  const state = join(homedir(), '.local/state/tabern');
  const userDir = (XDG_STATE_HOME: string) => openCli({}, { ...env, XDG_STATE_HOME }).userDir();
  assert.equal(['/s', '', 'relative/s'].map(userDir), ['/s/tabern', state, state]);
  assert.throws(() => openCli({}, {}), /set TABERN_API_KEY/);
  for (const apiKey of ['two\nlines', 'two words', 'schlüssel']) {
    assert.throws(() => openCli({ apiKey }, {}), /API key has/);
  }
  assert.throws(() => openCli({ baseUrl: 'file:///etc' }, env), /must look like/);
  assert.throws(() => openCli({ baseUrl: 'http://user:pass@x' }, env), /must look like/);
});

cli.run();
