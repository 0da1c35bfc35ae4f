/** Changes of a project as server-sent events. */
import { get } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { type Console, KEY, messageOf, openConsole } from './console.ts';

const test = suite('gateway/console/changes');

const CHANGES = '/console/api/v1/changes';
/** Time for a heartbeat of the test's gateway. */
const HEARTBEAT_MS = 50;
const HOUR_MS = 3_600_000;

type Event = { id: string | undefined; type: string; data: string };
type Stream = Disposable & {
  headers: Record<string, unknown>;
  events: readonly Event[];
  readonly isEnded: boolean;
};

test('a change is an event; the next connection continues behind it', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  using stream = await open(console, { cookie });
  assert.is(stream.headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.is(stream.headers['x-accel-buffering'], 'no');
  assert.is(stream.headers['cache-control'], 'no-store');
  assert.match(String(stream.headers['set-cookie']), /^tabern=/);
  const first = await until(() => stream.events[0]);
  assert.is(JSON.parse(first.data).kind, 'ALL');
  const id = await newContext(console, cookie);
  const changed = await until(() => stream.events[1]);
  const { kind, ids, version } = JSON.parse(changed.data);
  assert.equal([kind, ids, String(version)], ['CONTEXTS', [id], changed.id]);

  using resumed = await open(console, { cookie, 'last-event-id': changed.id ?? '' });
  using queried = await open(console, { cookie }, `?after=${changed.id}`);
  using old = await open(console, { cookie, 'last-event-id': 'x' });
  assert.is(JSON.parse((await until(() => old.events[0])).data).kind, 'ALL');
  const next = await newContext(console, cookie);
  for (const one of [resumed, queried]) {
    const { data } = await until(() => one.events[0]);
    assert.equal(JSON.parse(data).ids, [next], 'nothing else was sent before');
  }
});

test('topics select kinds; an unknown one is named', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  using other = await open(console, { cookie }, '?topics=sessions,builds');
  using own = await open(console, { cookie }, '?topics=builds,contexts');
  await newContext(console, cookie);
  await until(() => own.events[1]);
  assert.is(other.events.length, 1, 'ALL only');
  const refused = await console.browse('GET', `${CHANGES}?topics=sessions,none`, { cookie });
  assert.is(refused.status, 400);
  assert.match(messageOf(refused), /`topics` must be names of sessions, invocations/);
});

test('another project sees none of them', async () => {
  await using console = await openConsole();
  const { app } = console;
  await app.clients.operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const [mine, theirs] = [
    await console.logIn(),
    await console.logIn((await console.key('other')).key),
  ];
  using seen = await open(console, { cookie: mine });
  using foreign = await open(console, { cookie: theirs });
  await newContext(console, mine);
  await until(() => seen.events[1]);
  const id = await newContext(console, theirs);
  const { data } = await until(() => foreign.events[1]);
  assert.equal(JSON.parse(data).ids, [id]);
});

test('heartbeats keep it open, and do not count as a use of the login', async () => {
  await using console = await openConsole({ heartbeatMs: HEARTBEAT_MS });
  const cookie = await console.logIn();
  using stream = await open(console, { cookie });
  await until(() => stream.events.filter(({ type }) => type === 'heartbeat').length >= 2);
  console.app.clock.advance(11 * HOUR_MS);
  const count = stream.events.length;
  await until(() => stream.events.length > count + 1);
  console.app.clock.advance(HOUR_MS);
  await until(() => stream.isEnded);
  assert.is(stream.events.at(-1)?.type, 'end');
});

test('it ends with a logout, and with the key', async () => {
  await using console = await openConsole({ heartbeatMs: HEARTBEAT_MS });
  const { app } = console;
  const { key, id } = await console.key('default');
  const [cookie, other] = [await console.logIn(key), await console.logIn()];
  using revoked = await open(console, { cookie });
  using left = await open(console, { cookie: other });
  using keyed = await open(console, { 'x-svc-api-key': KEY });
  await app.clients.operators.revokeApiKey({ id }, app.asOperator);
  await until(() => revoked.isEnded);
  assert.is(revoked.events.at(-1)?.type, 'end');
  assert.not(left.isEnded);
  await console.browse('POST', '/console/logout', { cookie: other });
  await until(() => left.isEnded);
  assert.is(left.events.at(-1)?.type, 'end');
  assert.not(keyed.isEnded);
});

test('without a login it is a 401, and from another site a 403', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  assert.is((await console.browse('GET', CHANGES)).status, 401);
  const stale = `tabern=${'A'.repeat(43)}`;
  assert.is((await console.browse('GET', CHANGES, { cookie: stale })).status, 401);
  const headers = { 'sec-fetch-site': 'same-site' };
  assert.is((await console.browse('GET', CHANGES, { cookie, headers })).status, 403);
});

test('a request for the headers alone leaves no stream behind', async () => {
  await using console = await openConsole();
  const { console: core } = console.app.clients;
  const { watchChanges: watch } = core;
  const counts = { begun: 0, ended: 0 };
  async function* watchChanges(...wanted: Parameters<typeof watch>) {
    counts.begun += 1;
    try {
      yield* watch(...wanted);
    } finally {
      counts.ended += 1;
    }
  }
  Object.assign(core, { watchChanges });
  const { status } = await console.browse('HEAD', CHANGES, { cookie: await console.logIn() });
  assert.equal([status, counts.begun], [200, 1]);
  await until(() => counts.ended === 1);
});

test('a closing gateway ends it, for the client to connect again', async () => {
  let stream: Stream;
  {
    await using console = await openConsole();
    stream = await open(console, { cookie: await console.logIn() });
    await until(() => stream.events[0]);
  }
  await until(() => stream.isEnded);
  assert.not(stream.events.some(({ type }) => type === 'end'));
});

test.run();

/** Resolves when the answer has begun; throws unless it is 200. */
function open(console: Console, headers: Record<string, string>, query = ''): Promise<Stream> {
  const own = { 'sec-fetch-site': 'same-origin', ...headers };
  return new Promise((resolve, reject) => {
    const sent = get(`${console.url}${CHANGES}${query}`, { headers: own, agent: false });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      if (answer.statusCode !== 200) return reject(new Error(`answered ${answer.statusCode}`));
      const events: Event[] = [];
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        const parts = (text + chunk).split('\n\n');
        text = parts.pop() ?? '';
        events.push(...parts.flatMap(eventOf));
      });
      answer.on('error', () => undefined); // the test ends it
      resolve({
        headers: answer.headers,
        events,
        get isEnded() {
          return answer.complete || answer.destroyed;
        },
        [Symbol.dispose]: () => sent.destroy(),
      });
    });
  });
}

function eventOf(text: string): Event[] {
  const fields = new Map(text.split('\n').map((line) => line.split(': ', 2) as [string, string]));
  const data = fields.get('data');
  if (data === undefined) return []; // `retry`
  return [{ id: fields.get('id'), type: fields.get('event') ?? 'message', data }];
}

async function newContext(console: Console, cookie: string): Promise<string> {
  const { json } = await console.browse('POST', '/v1/contexts', { cookie, body: {} });
  return String(json?.['id']);
}
