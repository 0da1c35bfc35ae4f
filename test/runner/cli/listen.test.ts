/** `tabern listen` against a service whose answers are scripted, and a developer's own server. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { listen } from '../../../runner/cli/listen.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { KEY, service, terminal } from '../../support/servers/scripted.ts';

const cli = suite('runner/cli/listen');
const NEXT = 'GET /v1/events?wait=25&cursor=';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = '{"id":"e-1",  "text":"ünïcode 🦊"}';

const eventOf = (id: string, type: string, body = BODY) => ({ id, type, body });

type Got = { headers: Record<string, string>; body: Buffer };

/** A developer's server: answers with the statuses, then with 200. */
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

cli('an event is forwarded byte for byte and signed, and a line tells its status', async () => {
  await using local = await developer(204);
  await using remote = await service({
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

cli('without --secret one is made, printed once, and signs', async () => {
  await using local = await developer();
  await using remote = await service({
    'GET /v1/events': { json: { data: [], nextCursor: 'e1' } },
    [`${NEXT}e1`]: { json: { data: [eventOf('e-1', 'a.b')], nextCursor: 'e2' } },
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { said } = await listened(remote.baseUrl, { forwardTo: local.url }, 1);
  const [secret = ''] = said.join('\n').match(/whsec_\S+/) ?? [];
  const [first] = local.got;
  new Webhook(secret).verify(first?.body ?? '', first?.headers ?? {});
});

cli('--types forwards those alone, --json prints objects', async () => {
  await using local = await developer();
  const data = [eventOf('e-1', 'a'), eventOf('e-2', 'b'), eventOf('e-3', 'c')];
  await using remote = await service({
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

cli('a forward that fails is not repeated, and the next one is made', async () => {
  await using local = await developer(500, 307);
  const data = ['e-1', 'e-2', 'e-3'].map((id) => eventOf(id, 'a'));
  await using remote = await service({
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

cli('a URL where nobody listens is said, and listening goes on', async () => {
  await using remote = await service({
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

cli('a service that is away is asked again, from where it was left', async () => {
  await using local = await developer();
  const away = { status: 503, json: { message: 'Not now.' } };
  await using remote = await service({
    'GET /v1/events': [away, { json: { data: [], nextCursor: 'e1' } }],
    [`${NEXT}e1`]: [away, away, { json: { data: [eventOf('e-1', 'a')], nextCursor: 'e2' } }],
    [`${NEXT}e2`]: { json: { data: [], nextCursor: 'e2' } },
  });
  const { said } = await listened(remote.baseUrl, { forwardTo: local.url }, 1);
  assert.is(said.filter((line) => line === 'the service is back').length, 2);
  assert.is(local.got.length, 1);
});

cli('a key that is refused ends it', async () => {
  const refused = { status: 401, json: { statusCode: 401, message: 'Unauthorized' } };
  await using remote = await service({ 'GET /v1/events': refused });
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
  cli(`${JSON.stringify(options)} is refused before anything is sent`, async () => {
    await using remote = await service({});
    const asked = new AbortController().signal;
    const error = await errorOf(listen(options, terminal(remote.baseUrl).cli, asked));
    assert.match((error as Error).message, /^--(forward-to|secret) must be/);
    assert.equal(remote.seen, []);
  });
}

cli.run();
