/** The commands against a real HTTP server: what they send, what they print, and what they never do. */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { list } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { logText, openApi } from '../../runner/cli/api.ts';
import { type Cli, CliError, openCli } from '../../runner/cli/config.ts';
import { ignored } from '../../runner/cli/ignore.ts';
import { invoke } from '../../runner/cli/invoke.ts';
import { logs } from '../../runner/cli/logs.ts';
import { publish } from '../../runner/cli/publish.ts';
import { errorOf } from '../support/fault.ts';
import { directory } from '../support/project.ts';

const cli = suite('runner/cli');
const KEY = 'svc_a-key-that-must-never-be-printed';
const ID = '0199c0de-0000-7000-8000-000000000001';

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: Buffer };
type Answer = { status?: number; json?: unknown; text?: string; headers?: Record<string, string> };

/** A server whose answers are scripted by `METHOD path`; the last of a list stays. */
async function service(script: Record<string, Answer | Answer[]>) {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: await buffer(request) });
    const found = script[`${method} ${url}`];
    const answer = Array.isArray(found)
      ? found.length > 1
        ? found.shift()
        : found[0]
      : (found ?? { status: 404, json: { statusCode: 404, message: 'Build not found.' } });
    const { status = 200, json, text, headers: extra } = answer ?? {};
    response.writeHead(status, { 'content-type': 'application/json', ...extra });
    response.end(text ?? JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    baseUrl: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function terminal(baseUrl: string, cwd = '/') {
  const out: string[] = [];
  const said: string[] = [];
  const opened: Cli = {
    baseUrl,
    apiKey: KEY,
    cwd,
    print: (line) => out.push(line),
    say: (line) => said.push(line),
    pollMs: 1,
  };
  return { cli: opened, out, said };
}

const FILES = {
  'index.ts': 'export {}',
  'lib/more.ts': 'export {}',
  'package.json': '{}',
  '.gitignore': 'secret.txt\n',
  'secret.txt': 'x',
  '.env.local': 'x',
  'tabern_data/keys/master.key': 'x',
  'node_modules/a/index.js': 'x',
};
const LINE = { message: 'unpacked 3 entries', timestamp: 0, level: 'info' };
const FUNCTION = { name: 'title', id: ID, createdVersion: { id: 'v-1' } };

function namesIn(archive: Buffer): Promise<string[]> {
  const names: string[] = [];
  return new Promise((resolve, reject) => {
    const parser = list({ onReadEntry: (entry) => void names.push(entry.path) });
    parser.on('end', () => resolve(names));
    parser.on('error', reject);
    parser.end(archive);
  });
}

cli('publish uploads what belongs to the project, waits, and prints what was built', async () => {
  await using project = directory(FILES);
  await using remote = await service({
    'POST /v1/functions/builds': { status: 202, json: { id: ID, status: 'PENDING' } },
    [`GET /v1/functions/builds/${ID}`]: [
      { json: { id: ID, status: 'PENDING' } },
      { status: 503, json: { message: 'The service is starting.' } },
      { json: { id: ID, status: 'RUNNING' } },
      { json: { id: ID, status: 'COMPLETED', builtFunctions: [FUNCTION] } },
    ],
    [`GET /v1/functions/builds/${ID}/logs`]: [{ json: { logs: [] } }, { json: { logs: [LINE] } }],
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl, project.path);
  assert.is(await publish('./index.ts', {}, opened), 0);
  assert.equal(out, [`title\t${ID}\tversion v-1`]);
  assert.is(said.filter((line) => line.includes('unpacked 3 entries')).length, 1);

  const sent = remote.seen[0];
  assert.is(sent?.headers['x-svc-api-key'], KEY);
  const form = await new Response(new Uint8Array(sent?.body ?? []), {
    headers: { 'content-type': String(sent?.headers['content-type']) },
  }).formData();
  assert.equal(JSON.parse(String(form.get('metadata'))), { entrypoint: 'index.ts' });
  const archive = form.get('archive') as File;
  assert.is(archive.name, 'archive.tar.gz');
  const names = await namesIn(Buffer.from(await archive.arrayBuffer()));
  const files = names
    .map((name) => name.replace(/^\.\//, ''))
    .filter((name) => !/\/$|^$/.test(name));
  assert.equal(files.sort(), ['.gitignore', 'index.ts', 'lib/more.ts', 'package.json']);
});

cli('a failed build prints its cause and its log, and exits 1', async () => {
  await using project = directory(FILES);
  const cause = { code: 'BUILD_ERROR', message: 'index.ts:1: it is wrong' };
  const build = { id: ID, status: 'FAILED', cause };
  await using remote = await service({
    'POST /v1/functions/builds': { status: 202, json: { id: ID } },
    [`GET /v1/functions/builds/${ID}`]: { json: build },
    [`GET /v1/functions/builds/${ID}/logs`]: { json: { logs: [LINE] } },
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl, project.path);
  assert.is(await publish('index.ts', { json: true }, opened), 1);
  assert.equal(JSON.parse(out.join()), build);
  assert.ok(said.includes('build failed: BUILD_ERROR: index.ts:1: it is wrong'));
  assert.ok(said.some((line) => line.endsWith('info unpacked 3 entries')));
});

for (const [what, argument, problem] of [
  ['a file that is not there', 'none.ts', /there is no file none\.ts/],
  ['a file above the project', '../x.ts', /outside the current directory/],
  ['a folder', 'lib', /there is no file lib/],
  ['what is no source', 'package.json', /is not a source file/],
  ['an entry that is ignored', 'node_modules/a/index.js', /is not published/],
] as const) {
  cli(`publish refuses ${what}, and sends nothing`, async () => {
    await using project = directory(FILES);
    await using remote = await service({});
    const { cli: opened } = terminal(remote.baseUrl, project.path);
    const error = await errorOf(publish(argument, {}, opened));
    assert.instance(error, CliError);
    assert.match((error as Error).message, problem);
    assert.equal(remote.seen, []);
  });
}

cli('publish refuses more than 25 MB before it sends anything', async () => {
  await using project = directory(FILES);
  const noise = Buffer.alloc(26 * 1024 * 1024);
  for (let at = 0; at < noise.length; at += 4)
    noise.writeUInt32LE((Math.random() * 2 ** 32) >>> 0, at);
  writeFileSync(join(project.path, 'big.bin'), noise);
  await using remote = await service({});
  const { cli: opened } = terminal(remote.baseUrl, project.path);
  const error = await errorOf(publish('index.ts', {}, opened));
  assert.match((error as Error).message, 'packs to more than 25 MB');
  assert.equal(remote.seen, []);
});

cli('invoke sends params, finds a function by name, prints results and exits 0', async () => {
  const invocation = { id: 'i-1', status: 'COMPLETED', results: { title: 'T' } };
  const [url, ended] = ['/v1/functions/invocations/i-1', [{ json: invocation }]];
  await using remote = await service({
    'GET /v1/functions?offset=0&limit=100': { json: { data: [FUNCTION] } },
    [`POST /v1/functions/${ID}/invoke`]: { status: 202, json: { id: 'i-1', status: 'PENDING' } },
    [`GET ${url}`]: [{ json: { status: 'RUNNING' } }, ...ended],
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
    'GET /v1/functions/invocations/i-1': { json: { status: 'FAILED', cause } },
    'GET /v1/functions/invocations/i-1/logs': { json: { logs: [] } },
  });
  const { cli: opened, out, said } = terminal(remote.baseUrl);
  assert.is(await invoke(ID, {}, opened), 1);
  assert.equal(out, []);
  assert.match(said.join(), 'WORKLOAD_ERROR: RangeError: asked to\u{fffd}[2J fail');
});

cli('params that are no object are refused before anything is sent', async () => {
  await using remote = await service({});
  for (const params of ['[1]', '"a"', 'null', '{']) {
    const error = await errorOf(invoke(ID, { params }, terminal(remote.baseUrl).cli));
    assert.match((error as Error).message, /params/);
  }
  assert.equal(remote.seen, []);
});

cli('logs are printed as lines that cannot steer the terminal', async () => {
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

cli('an error is the words of the service, and a key is in none', async () => {
  await using remote = await service({
    'GET /bad': { status: 401, json: { statusCode: 401, message: 'Invalid API key.' } },
    'GET /page': { text: '<html>' },
    'GET /gone': { status: 502, text: 'no JSON' },
  });
  const api = openApi(terminal(remote.baseUrl).cli);
  const said = async (path: string) => ((await errorOf(api.get(path))) as Error).message;
  assert.is(await said('/bad'), '401 Invalid API key.');
  assert.match(await said('/page'), 'the answer is not JSON');
  assert.match(await said('/gone'), '502 Bad Gateway');
  const dead = openApi({ ...terminal('http://127.0.0.1:9').cli });
  const unreached = ((await errorOf(dead.get('/'))) as Error).message;
  assert.match(unreached, /^cannot reach http:\/\/127\.0\.0\.1:9 \(.+\); is the service running/);
  assert.not.match(unreached, KEY);
});

cli('a redirect is not followed, so the key stays here', async () => {
  await using other = await service({ 'GET /x': { json: {} } });
  const location = `${other.baseUrl}/x`;
  await using remote = await service({
    'GET /x': { status: 302, headers: { location }, text: '' },
  });
  const error = await errorOf(openApi(terminal(remote.baseUrl).cli).get('/x'));
  assert.match((error as Error).message, 'answered with a redirect');
  assert.equal(other.seen, []);
});

cli('options win over variables, and what is missing is said', () => {
  const env = { TABERN_API_KEY: 'from-env', TABERN_URL: 'https://a.example/base/' };
  assert.is(openCli({}, env).baseUrl, 'https://a.example/base');
  assert.is(openCli({ apiKey: 'given', url: 'http://b' }, env).apiKey, 'given');
  assert.is(openCli({}, { TABERN_API_KEY: 'k', TABERN_PORT: '5' }).baseUrl, 'http://127.0.0.1:5');
  assert.is(
    openCli({}, { TABERN_API_KEY: 'k', TABERN_HOST: '::' }).baseUrl,
    'http://127.0.0.1:4747',
  );
  assert.throws(() => openCli({}, {}), /set TABERN_API_KEY/);
  assert.throws(() => openCli({ url: 'file:///etc' }, env), /must look like/);
  assert.throws(() => openCli({ url: 'http://user:pass@x' }, env), /must look like/);
});

cli('lines of .gitignore are simple patterns, and the last that matches decides', () => {
  const isIgnored = ignored('# c\n\n*.tmp\n/top\nfolder/\na/**/z\n!keep.tmp\nx.y?\n!.env\n');
  for (const [path, isFolder, expected] of [
    ['deep/in/a.tmp', false, true],
    ['keep.tmp', false, false],
    ['top', false, true],
    ['deep/top', false, false],
    ['folder', true, true],
    ['folder', false, false],
    ['a/b/c/z', false, true],
    ['a/z', false, true],
    ['x.yz', false, true],
    ['xxyz', false, false],
    ['src/dist', true, false],
    ['dist', true, true],
    ['packages/a/node_modules', true, true],
    ['.env', false, true],
    ['src/.env.local', false, true],
    ['index.ts', false, false],
  ] as const) {
    assert.is(isIgnored(path, isFolder), expected, path);
  }
});

cli.run();
