/** `tabern console` and logins on a running service; what its logs do not contain. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { inherited } from '../../support/service/serve.ts';
import { shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/console/command');

const LAUNCHER = new URL('../../../gateway/tabern.js', import.meta.url).pathname;
const shared = shareStack({ env: { TABERN_LOG_LEVEL: 'trace' } });
/** Credentials that the tests used. */
const secrets: string[] = [];

async function run(words: readonly string[], dataDir: string, env: Record<string, string> = {}) {
  const own = { TABERN_DATA: dataDir, TABERN_PORT: '4747', ...env };
  const child = spawn(process.execPath, [LAUNCHER, ...words], { env: { ...inherited(), ...own } });
  const exited = once(child, 'exit');
  const [out, said] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await exited;
  return { code, out: out.trim(), said: said.trim() };
}

async function post(url: string, path: string, body: object, cookie = '') {
  const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', cookie };
  const all = { ...headers, origin: url };
  return fetch(url + path, { method: 'POST', headers: all, body: JSON.stringify(body) });
}

function cookieOf(answer: Response): string {
  const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  secrets.push(cookie.split('=')[1] ?? '');
  return cookie;
}

async function meOf(url: string, cookie: string) {
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  return fetch(`${url}/console/api/v1/me`, { headers });
}

test('the service prints the address of its console when it is ready', async () => {
  const stack = await shared.get();
  await until(() => /^ {2}console {5}http:\/\/127\.0\.0\.1:\d+\/console$/m.test(stack.logs()));
});

test('the printed link logs in once, to the named project', async () => {
  const { url, dataDir, projectId } = await shared.get();
  const words = ['console', '--no-open', '--base-url', `${url}/`];
  const { code, out, said } = await run(words, dataDir, { DISPLAY: ':0' });
  assert.is(code, 0, said);
  assert.match(said, /console of project default; the link is valid for 60 s and one login/);
  const [page, key = ''] = out.split('#code=');
  secrets.push(key);
  assert.is(page, `${url}/console/login`);
  const made = await post(url, '/console/login', { code: key });
  assert.is(made.status, 200);
  const me = await meOf(url, cookieOf(made));
  assert.is(((await me.json()) as { projectId: string }).projectId, projectId);
  assert.is((await post(url, '/console/login', { code: key })).status, 401);

  const unknown = await run(['console', '--no-open', '--project', 'none'], dataDir);
  assert.equal([unknown.code, unknown.out], [1, '']);
  assert.match(unknown.said, /Project not found/);
});

test('the link names the public URL, else the address of the settings', async () => {
  const { dataDir } = await shared.get();
  const linkOf = async (env: Record<string, string>) => {
    const { out, said } = await run(['console', '--json'], dataDir, env);
    const { link } = JSON.parse(out || said) as { link: string };
    secrets.push(link.split('=')[1] ?? '');
    return link.split('/console')[0];
  };
  assert.is(await linkOf({}), 'http://127.0.0.1:4747');
  assert.is(await linkOf({ TABERN_PUBLIC_URL: 'https://x.example' }), 'https://x.example');
});

test('xdg-open gets the link when there is a desktop, unless told otherwise', async () => {
  const { dataDir } = await shared.get();
  await using dir = tempDirectory();
  const opened = join(dir.path, 'opened');
  writeFileSync(join(dir.path, 'xdg-open'), `#!/bin/sh\necho "$1" >> ${opened}\n`, { mode: 0o755 });
  const path = `${dir.path}:${process.env['PATH']}`;
  const desktop = { DISPLAY: ':0', PATH: path };
  const quiet = { DISPLAY: '', WAYLAND_DISPLAY: '', PATH: path };
  await run(['console'], dataDir, quiet);
  await run(['console', '--no-open'], dataDir, desktop);
  await run(['console', '--json'], dataDir, desktop);
  const { out } = await run(['console'], dataDir, desktop);
  secrets.push(out.split('#code=')[1] ?? '');
  const links = await until(() => existsSync(opened) && readFileSync(opened, 'utf8'));
  assert.is(links, `${out}\n`, 'once, without --no-open and --json');
  const bare = await run(['console'], dataDir, { DISPLAY: ':0', PATH: '/nowhere' });
  assert.is(bare.code, 0, 'the link is printed all the same');
});

test('a revoked key ends the login', async () => {
  const { url, dataDir } = await shared.get();
  using operator = operatorOf(dataDir);
  const { operators, options } = operator;
  const { key, apiKey } = await operators.createApiKey({ project: 'default', name: '' }, options);
  secrets.push(key);
  const cookie = cookieOf(await post(url, '/console/login', { apiKey: key }));
  assert.is((await meOf(url, cookie)).status, 200);
  await operators.revokeApiKey({ id: apiKey?.id ?? '' }, options);
  await until(async () => (await meOf(url, cookie)).status === 401);
});

test('no log contains a cookie, a code or a key', async () => {
  const stack = await shared.get();
  const cookie = cookieOf(await post(stack.url, '/console/login', { apiKey: stack.apiKey }));
  await post(stack.url, '/console/login', { apiKey: 'svc_wrong_key_of_the_tests' });
  await post(stack.url, '/console/logout', {}, cookie);
  secrets.push(stack.apiKey, 'svc_wrong_key_of_the_tests');
  // The log is read from a pipe: it may arrive after the answer.
  await until(() => stack.logs().includes('/console/logout'));
  const logs = stack.logs();
  assert.ok(secrets.length >= 8);
  for (const secret of secrets) {
    assert.ok(secret.length >= 20);
    assert.not(logs.includes(secret), 'a secret is in the log');
  }
});

test('the service ends', () => shared.end());

test.run();
