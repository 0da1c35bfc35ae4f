/** The command as a process: its output and its exit code. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';
import { type Run, tabern } from '../../support/service/command.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/cli/bin');
const LAUNCHER = fileURLToPath(new URL('../../../gateway/tabern.js', import.meta.url));
/** Of each process, on a machine that is busy. */
const LIMIT_MS = 60_000;

function start(command: readonly string[], env: Record<string, string> = {}, cwd = '/') {
  const { PATH = '', HOME = '' } = process.env;
  const own = { PATH, HOME, ...moduleCacheEnv(), ...env };
  const child = spawn(command[0] ?? '', command.slice(1), { cwd, env: own });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    said.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said.err += text;
  });
  const ended: Run['ended'] = once(child, 'close', {
    signal: AbortSignal.timeout(LIMIT_MS),
  }).then(([code]) => ({ code, ...said }));
  return { child, said, ended };
}

async function saidOn(run: Run, pattern: RegExp): Promise<void> {
  const until = Date.now() + LIMIT_MS;
  while (!pattern.test(run.said.out)) {
    if (Date.now() > until || run.child.exitCode !== null) throw new Error(run.said.err);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('version and help exit with 0, an unknown command does not', async () => {
  const version = await tabern(['version']).ended;
  assert.is(version.code, 0);
  assert.match(version.out, /^\d+\.\d+\.\d+\n$/);
  const help = await tabern(['--help']).ended;
  assert.is(help.code, 0);
  for (const name of ['serve', 'core', 'gateway', 'runner', 'publish', 'invoke', 'logs']) {
    assert.match(help.out, new RegExp(`^ +${name} `, 'm'));
  }
  assert.is((await tabern(['brew']).ended).code, 2);
  assert.is((await tabern(['publish']).ended).code, 2);
});

test('serve exits with 2 and one line that names an invalid setting', async () => {
  await using data = tempDirectory();
  const wrong = { TABERN_DATA: data.path, TABERN_PORT: 'http' };
  const { code, out, err } = await tabern(['serve'], wrong).ended;
  assert.is(code, 2);
  assert.is(out, '');
  assert.match(err, /^tabern: TABERN_PORT must be a whole number[^\n]*\n$/);
  const key = { TABERN_DATA: data.path, TABERN_API_KEY: 'short' };
  assert.match((await tabern(['core'], key).ended).err, /^tabern: TABERN_API_KEY must/);
});

test('`tabern core` prints the key until it is used, and runs once', async () => {
  await using data = tempDirectory();
  const env = { TABERN_DATA: join(data.path, 'data') };
  const first = tabern(['core'], env);
  await saidOn(first, /API key +svc_\S{50,}/);
  await saidOn(first, /^ +core +unix:\S+core\.sock$/m);
  await saidOn(first, /^ {2}\S.* gateway --core unix:\S+core\.sock$/m);
  assert.not.match(first.said.out, /base URL/);
  const second = await tabern(['core'], env).ended;
  assert.is(second.code, 75);
  assert.match(second.err, /another tabern runs/);
  first.child.kill('SIGTERM');
  assert.is((await first.ended).code, 0);
  const again = tabern(['core'], env);
  await saidOn(again, /API key +svc_\S{50,}/);
  again.child.kill('SIGINT');
  const { code, out } = await again.ended;
  assert.is(code, 0);
  assert.is(out, first.said.out, 'nobody has used it');
});

test('a configured key is never printed', async () => {
  await using data = tempDirectory();
  const key = 'a-key-that-the-operator-chose';
  const run = tabern(['core'], { TABERN_DATA: data.path, TABERN_API_KEY: key });
  await saidOn(run, /from your settings/);
  run.child.kill('SIGTERM');
  const { code, out, err } = await run.ended;
  assert.is(code, 0);
  assert.not.ok((out + err).includes(key));
});

test('a quickstart reads the key from the file that has it', async () => {
  await using data = tempDirectory();
  const file = join(data.path, 'api key');
  writeFileSync(file, 'a-key-that-the-operator-chose\n', { mode: 0o600 });
  const run = tabern(['core'], { TABERN_DATA: data.path, TABERN_API_KEY_FILE: file });
  await saidOn(run, new RegExp(`API key +\\$\\(cat '${file}'\\) `));
  run.child.kill('SIGTERM');
  assert.is((await run.ended).code, 0);
});

test('`tabern gateway` serves core’s answers over the socket', async () => {
  await using data = tempDirectory();
  const key = 'a-key-that-the-operator-chose';
  const env = { TABERN_DATA: data.path, TABERN_PORT: '0', TABERN_API_KEY: key };
  const core = tabern(['core'], env);
  await saidOn(core, /from your settings/);
  const gateway = tabern(['gateway'], env);
  await saidOn(gateway, /^http:\/\/127\.0\.0\.1:\d+\n/);
  const url = gateway.said.out.trim();
  const answer = await fetch(`${url}/v1/projects`, { headers: { 'x-svc-api-key': key } });
  assert.is(answer.status, 200);
  assert.is(((await answer.json()) as unknown[]).length, 1);
  const wrong = await fetch(`${url}/v1/projects`, { headers: { 'x-svc-api-key': `${key}x` } });
  assert.is(wrong.status, 401);
  assert.is((await fetch(`${url}/healthz`)).status, 200);

  core.child.kill('SIGTERM');
  await core.ended;
  const gone = await fetch(`${url}/v1/projects`, { headers: { 'x-svc-api-key': key } });
  assert.is(gone.status, 503);
  assert.not.match(await gone.text(), /core\.sock/);
  assert.is((await fetch(`${url}/healthz`)).status, 503);
  gateway.child.kill('SIGTERM');
  assert.is((await gateway.ended).code, 0);
});

test('serve exits with 69 when the port is in use', async () => {
  await using data = tempDirectory();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const env = { TABERN_DATA: data.path, TABERN_PORT: String(port) };
  const { code, err } = await tabern(['serve'], env).ended;
  taken.close();
  assert.is(code, 69);
  assert.match(err, /is in use: stop the process that uses it or set TABERN_PORT/);
});

test('the next start prints a key that was created while the port was in use', async () => {
  await using data = tempDirectory();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const env = { TABERN_DATA: data.path, TABERN_PORT: String(port) };
  const { code, out } = await tabern(['serve'], env).ended;
  taken.close();
  assert.equal({ code, out }, { code: 69, out: '' });
  const run = tabern(['serve'], { ...env, TABERN_PORT: '0' });
  await saidOn(run, /API key +svc_\S{50,}/);
  const [, url] = /base URL +(\S+)/.exec(run.said.out) ?? [];
  const [, key = ''] = /API key +(\S+)/.exec(run.said.out) ?? [];
  const headers = { 'x-svc-api-key': key };
  const answer = await fetch(`${url}/v1/projects`, { headers });
  run.child.kill('SIGTERM');
  assert.is(answer.status, 200);
  assert.is((await run.ended).code, 0);
});

/** The machine's own Node, where it has one: too old for TypeScript on the machines we know. */
const OWN_NODE = { PATH: '/usr/local/bin:/usr/bin:/bin' };
const launcher = (argv: string[], env: Record<string, string>, cwd: string) =>
  start(['/usr/bin/env', 'node', LAUNCHER, ...argv], env, cwd);

test('the launcher works from any directory, and under an old Node', async () => {
  await using data = tempDirectory();
  const { out } = await start([process.execPath, LAUNCHER, 'version'], {}, data.path).ended;
  assert.match(out, /^\d+\.\d+\.\d+\n$/);
  const own = await launcher(['brew'], OWN_NODE, data.path).ended;
  if (own.code === 127) return;
  assert.is(own.code, 2);
  assert.match(own.err, /unknown command 'brew'/);
});

test('the launcher forwards signals and exits as its child does', async () => {
  await using data = tempDirectory();
  const { code } = await launcher(['version'], OWN_NODE, data.path).ended;
  if (code === 127) return;
  const run = launcher(['core'], { ...OWN_NODE, TABERN_DATA: data.path }, data.path);
  await saidOn(run, /tabern is ready/);
  run.child.kill('SIGTERM');
  assert.is((await run.ended).code, 0);
});

test.run();
