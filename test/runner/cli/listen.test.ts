/** `tabern listen` with a scripted service and a developer's server. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { listen } from '../../../runner/cli/listen.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { KEY, service, terminal } from '../../support/servers/scripted.ts';
import { tempDirectory } from '../../support/temp.ts';

const cli = suite('runner/cli/listen');
const NEXT = 'GET /v1/events?wait=25&cursor=';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = '{"id":"e-1",  "text":"ünïcode 🦊"}';

const PROJECT = { 'GET /v1/projects': { json: [{ id: 'p-1' }] } };

const eventOf = (id: string, type: string, body = BODY) => ({ id, type, body });

type Got = { headers: Record<string, string>; body: Buffer };

/** A developer's server: responds with the statuses in order, then with 200. */
async function developer(...statuses: number[]) {
  const got: Got[] = [];
  const server = createServer(async (request, response) => {
    got.push({ headers: request.headers as Got['headers'], body: await buffer(request) });
    response.writeHead(statuses.shift() ?? 200, { location: '/elsewhere' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    got,
    url: `http://127.0.0.1:${port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Listens until `count` lines are printed. */
async function listened(baseUrl: string, options: Record<string, string | boolean>, count: number) {
  const shown = terminal(baseUrl);
  const asked = new AbortController();
  const running = listen(options, shown.cli, asked.signal);
  await until(() => shown.out.length >= count);
  asked.abort();
  assert.is(await running, 0);
  return shown;
}

cli('an event is forwarded byte for byte and signed; its status is printed', async () => {
  await using local = await developer(204);
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data: [eventOf('e-1', 'a.b')], nextCursor: 'e2' } },
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { out, said } = await listened(remote.baseUrl, { forwardTo: local.url, secret: SECRET }, 1);
  assert.match(out.join('\n'), /^\d\d:\d\d:\d\d 204 a\.b e-1$/);
  assert.match(said.join('\n'), SECRET);
  const [first] = local.got;
  assert.is(local.got.length, 1);
  assert.is(first?.body.toString(), BODY);
  assert.is(first?.headers['webhook-id'], 'e-1');
  new Webhook(SECRET).verify(first?.body ?? '', first?.headers ?? {});
  assert.is(remote.seen[0]?.headers['x-svc-api-key'], KEY);
  assert.not.match([...out, ...said].join('\n'), KEY);
});

cli('without --secret, a new secret is printed once and signs the events', async () => {
  await using local = await developer();
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data: [eventOf('e-1', 'a.b')], nextCursor: 'e2' } },
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { said } = await listened(remote.baseUrl, { forwardTo: local.url }, 1);
  const [secret = ''] = said.join('\n').match(/whsec_\S+/) ?? [];
  const [first] = local.got;
  new Webhook(secret).verify(first?.body ?? '', first?.headers ?? {});
});

const NONE = { json: { data: [], nextCursor: 'e1' } };
const QUIET = { 'GET /v1/events': NONE, [`${NEXT}e1`]: NONE };

/** The secret that `listen` prints, with that directory of the user. */
async function printedSecret(baseUrl: string, url: string, userDir: string): Promise<string> {
  const { cli: opened, said } = terminal(baseUrl);
  const asked = new AbortController();
  const cliOf = { ...opened, userDir: () => userDir };
  const running = listen({ forwardTo: url }, cliOf, asked.signal);
  const secret = await until(() => /whsec_\S+/.exec(said.join('\n'))?.[0]);
  asked.abort();
  await running;
  return secret;
}

cli('the secret is kept for its project, URL and service, for this user alone', async () => {
  await using dir = tempDirectory();
  const project = { json: [{ id: 'p-1' }] };
  const script = { ...QUIET, 'GET /v1/projects': project };
  await using remote = await service(script);
  await using elsewhere = await service(script);
  const secretOf = (baseUrl: string, url: string) => printedSecret(baseUrl, url, dir.path);
  const [a, b] = ['http://127.0.0.1:1/a', 'http://127.0.0.1:1/b'];
  const first = await secretOf(remote.baseUrl, a);
  assert.is(await secretOf(remote.baseUrl, a), first);
  assert.is.not(await secretOf(remote.baseUrl, b), first, 'same project, other URL');
  assert.is.not(await secretOf(elsewhere.baseUrl, a), first, 'other service');
  project.json = [{ id: 'p-2' }];
  assert.is.not(await secretOf(remote.baseUrl, a), first, 'same URL, other project');
  project.json = [{ id: 'p-1' }];
  assert.is(await secretOf(remote.baseUrl, a), first);
  const folder = join(dir.path, 'listen');
  assert.is(statSync(folder).mode & 0o777, 0o700);
  const names = readdirSync(folder);
  assert.is(names.length, 4);
  for (const name of names) assert.is(statSync(join(folder, name)).mode & 0o777, 0o600);
});

cli('two commands at once print the same secret, which is the kept one', async () => {
  await using dir = tempDirectory();
  await using remote = await service({ ...QUIET, ...PROJECT });
  const secretOf = () => printedSecret(remote.baseUrl, 'http://127.0.0.1:1/', dir.path);
  const [one, other] = await Promise.all([secretOf(), secretOf()]);
  assert.is(one, other);
  const [name = '', ...rest] = readdirSync(join(dir.path, 'listen'));
  assert.equal(rest, []);
  assert.is(readFileSync(join(dir.path, 'listen', name), 'utf8'), `${one}\n`);
});

cli('a file without a signing secret is an error that names the file', async () => {
  await using dir = tempDirectory();
  await using remote = await service({ ...QUIET, ...PROJECT });
  const url = 'http://127.0.0.1:1/';
  await printedSecret(remote.baseUrl, url, dir.path);
  const [name = ''] = readdirSync(join(dir.path, 'listen'));
  const path = join(dir.path, 'listen', name);
  for (const text of ['', 'whsec_cut', `svc_${'a'.repeat(64)}`]) {
    writeFileSync(path, text);
    const opened = { ...terminal(remote.baseUrl).cli, userDir: () => dir.path };
    const asked = new AbortController().signal;
    const error = await errorOf(listen({ forwardTo: url }, opened, asked));
    assert.is((error as Error).name, 'CliError');
    assert.match((error as Error).message, `secret in ${path}; delete the file`);
  }
});

for (const projects of [[], {}, [{}], [{ id: 7 }]]) {
  cli(`the answer ${JSON.stringify(projects)} has no project, and ends the command`, async () => {
    await using dir = tempDirectory();
    await using remote = await service({ ...QUIET, 'GET /v1/projects': { json: projects } });
    const opened = { ...terminal(remote.baseUrl).cli, userDir: () => dir.path };
    const asked = new AbortController().signal;
    const error = await errorOf(listen({ forwardTo: 'http://127.0.0.1:1/' }, opened, asked));
    assert.match((error as Error).message, /answered without a project/);
    assert.equal(readdirSync(dir.path), []);
  });
}

cli('a secret that cannot be kept is a warning', async () => {
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data: [], nextCursor: 'e1' } },
  });
  const { cli: opened, said } = terminal(remote.baseUrl);
  const asked = new AbortController();
  const running = listen({ forwardTo: 'http://127.0.0.1:1/' }, opened, asked.signal);
  await until(() => said.some((line) => line.startsWith('signing secret whsec_')));
  asked.abort();
  assert.is(await running, 0);
  assert.match(said.join('\n'), /warning: the signing secret is not kept: ENOTDIR: .*null/);
});

cli('without a home directory, the secret is not kept, and a warning says so', async () => {
  await using remote = await service({ ...QUIET, ...PROJECT });
  const { cli: opened, said } = terminal(remote.baseUrl);
  const asked = new AbortController();
  const userDir = () => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  const options = { forwardTo: 'http://127.0.0.1:1/' };
  const running = listen(options, { ...opened, userDir }, asked.signal);
  await until(() => said.some((line) => line.startsWith('signing secret whsec_')));
  asked.abort();
  assert.is(await running, 0);
  assert.match(said.join('\n'), /secret is not kept: uv_os_homedir/);
});

cli('--types forwards only these event types; --json prints objects', async () => {
  await using local = await developer();
  const data = [eventOf('e-1', 'a'), eventOf('e-2', 'b'), eventOf('e-3', 'c')];
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data, nextCursor: 'e4' } },
    [`${NEXT}e4`]: { json: { data: [], nextCursor: 'e4' } },
  });
  const options = { forwardTo: local.url, types: 'a, c', json: true };
  const { out } = await listened(remote.baseUrl, options, 2);
  const ids = out.map((line) => JSON.parse(line) as { id: string; answered: number });
  assert.equal(
    ids.map(({ id, answered }) => [id, answered]),
    [
      ['e-1', 200],
      ['e-3', 200],
    ],
  );
});

cli('a failed forward is not repeated; the next event is forwarded', async () => {
  await using local = await developer(500, 307);
  const data = ['e-1', 'e-2', 'e-3'].map((id) => eventOf(id, 'a'));
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data, nextCursor: 'e4' } },
    [`${NEXT}e4`]: { json: { data: [], nextCursor: 'e4' } },
  });
  const { out } = await listened(remote.baseUrl, { forwardTo: local.url }, 3);
  assert.match(out[0] ?? '', /500 a e-1 \(not repeated\)$/);
  assert.match(out[1] ?? '', /307 a e-2 \(not repeated\)$/);
  assert.match(out[2] ?? '', /200 a e-3$/);
  assert.is(local.got.length, 3);
});

cli('a refused connection is printed in place of a status', async () => {
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data: [eventOf('e-1', 'a')], nextCursor: 'e2' } },
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { out } = await listened(
    remote.baseUrl,
    { forwardTo: `http://127.0.0.1:${await freePort()}/` },
    1,
  );
  assert.match(out[0] ?? '', /ECONNREFUSED a e-1 \(not repeated\)$/);
});

cli('an unavailable service is polled again, from the last cursor', async () => {
  await using local = await developer();
  const away = { status: 503, json: { message: 'Not now.' } };
  await using remote = await service({
    ...PROJECT,
    'GET /v1/events': [away, { json: { data: [], nextCursor: 'e1' } }],
    [`${NEXT}e1`]: [away, away, { json: { data: [eventOf('e-1', 'a')], nextCursor: 'e2' } }],
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { said } = await listened(remote.baseUrl, { forwardTo: local.url }, 1);
  assert.is(said.filter((line) => line === 'the service is back').length, 2);
  assert.is(local.got.length, 1);
});

cli('a refused API key ends the command', async () => {
  const refused = { status: 401, json: { statusCode: 401, message: 'Unauthorized' } };
  await using remote = await service({ 'GET /v1/projects': refused });
  const { cli: opened } = terminal(remote.baseUrl);
  const asked = new AbortController().signal;
  const error = await errorOf(listen({ forwardTo: 'http://127.0.0.1:1/' }, opened, asked));
  assert.match((error as Error).message, /401/);
});

for (const options of [
  {},
  { forwardTo: 'localhost:3000' },
  { forwardTo: 'ftp://localhost/' },
  { forwardTo: 'http://user:word@localhost/' },
  { forwardTo: 'http://localhost/', secret: 'whsec_short' },
  { forwardTo: 'http://localhost/', secret: 'not one' },
]) {
  cli(`${JSON.stringify(options)} is refused before a request is sent`, async () => {
    await using remote = await service({});
    const asked = new AbortController().signal;
    const error = await errorOf(listen(options, terminal(remote.baseUrl).cli, asked));
    assert.match((error as Error).message, /^--(forward-to|secret) must be/);
    assert.equal(remote.seen, []);
  });
}

cli.run();
