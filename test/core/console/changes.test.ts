/** Changes of a project as they happen, in the process of core and over gRPC. */
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { Feed, intervalMs, Stream } from '../../../core/console/feed.ts';
import { must } from '../../../proto/common/must.ts';
import type { WatchChangesResponse } from '../../../proto/gen/tabern/v1/console.pb.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../../../proto/rpc/services.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import { boot } from '../boot.ts';
import { addFunctions, FIRST_MS, openLists } from './projects.ts';

const test = suite('core/console/changes');

const NEW_SESSION = {
  region: 'us-west-2',
  contextId: null,
  extensionId: null,
  keepAlive: false,
  userMetadata: null,
  params: '{}',
  timeoutMs: undefined,
  waitUntil: FIRST_MS,
  at: FIRST_MS,
};

type Watched = Partial<{ kinds: WatchChangesResponse['kind'][]; after: number; key: string }>;

/** A core with both of its transports, and streams that end with the test. */
async function openChanges() {
  const app = await boot();
  const channel = new Channel(app.core.address, credentials.createInsecure());
  const leaving = new AbortController();
  const open: Messages[] = [];
  const newKey = async (project: string) => {
    const wanted = { project, name: '' };
    return await app.clients.operators.createApiKey(wanted, app.asOperator);
  };
  return {
    ...app,
    transports: [app.clients, remoteClients(channel)],
    newKey,
    watch({ console }: Clients, { kinds = [], after, key }: Watched = {}) {
      const metadata = key === undefined ? app.asProject.metadata : { 'x-svc-api-key': key };
      const options = { metadata, signal: leaving.signal, timeoutMs: 600_000 };
      const messages = console.watchChanges({ kinds, after }, options)[Symbol.asyncIterator]();
      open.push(messages);
      return messages;
    },
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await Promise.allSettled(open.map((messages) => messages.return?.()));
      channel[Symbol.dispose]();
      await app[Symbol.asyncDispose]();
    },
  };
}

type Messages = AsyncIterator<WatchChangesResponse>;

async function next(messages: Messages): Promise<WatchChangesResponse> {
  const { value, done } = await messages.next();
  if (done) throw new Error('the stream has ended');
  return value;
}

/** Reads on until there is such a message. */
async function until(
  messages: Messages,
  isWanted: (one: WatchChangesResponse) => boolean,
): Promise<WatchChangesResponse> {
  for (;;) {
    const one = await next(messages);
    if (isWanted(one)) return one;
  }
}

test('a stream names what changes, on both transports, and its versions increase', async () => {
  await using app = await openChanges();
  const functionId = await app.publish({ name: 'title' });
  for (const clients of app.transports) {
    const all = app.watch(clients);
    const sessions = app.watch(clients, { kinds: ['SESSIONS'] });
    const [first, other] = [await next(all), await next(sessions)];
    assert.equal([first.kind, first.ids, other.kind], ['ALL', [], 'ALL']);
    const { id, sessionId } = await app.invoke(functionId);
    const told = await until(all, ({ kind }) => kind === 'INVOCATIONS');
    assert.equal(told.ids, [id]);
    assert.ok(told.version > first.version);
    const one = await next(sessions);
    assert.equal([one.kind, one.ids], ['SESSIONS', [sessionId]]);
    await app.lease('INVOCATION');
    assert.equal((await next(sessions)).ids, [sessionId]);
    assert.equal((await until(all, ({ kind }) => kind === 'INVOCATIONS')).ids, [id]);
  }
});

test('a project is not told of another project’s changes', async () => {
  await using app = await openChanges();
  const { project } = await app.clients.operators.createProject(
    { name: 'other', limits: {} },
    app.asOperator,
  );
  const { key } = await app.newKey(must(project?.project, 'a project').id);
  const theirs = app.watch(app.clients, { key });
  const own = app.watch(app.clients);
  assert.equal([(await next(theirs)).kind, (await next(own)).kind], ['ALL', 'ALL']);
  const functionId = await app.publish({ name: 'title' });
  await until(own, ({ kind }) => kind === 'FUNCTIONS');
  const as = { metadata: { 'x-svc-api-key': key } };
  const { id } = await app.clients.contexts.createContext({}, as);
  const told = await next(theirs);
  assert.equal([told.kind, told.ids], ['CONTEXTS', [id]]);
  assert.ok(functionId);
});

test('a client that has missed nothing is not told to read again', async () => {
  await using app = await openChanges();
  const functionId = await app.publish({ name: 'title' });
  const first = app.watch(app.clients);
  const { version: after } = await next(first);
  const again = app.watch(app.clients, { after, kinds: ['INVOCATIONS'] });
  const pending = next(again);
  // The feed of the project reads on while one stream is open.
  const { id } = await app.invoke(functionId);
  const told = await pending;
  assert.equal([told.kind, told.ids], ['INVOCATIONS', [id]]);
  assert.is((await next(app.watch(app.clients, { after: after - 1 }))).kind, 'ALL');
});

test('many changes are few messages', async () => {
  await using app = await openChanges();
  const functionId = await app.publish({ name: 'title' });
  const messages = app.watch(app.clients, { kinds: ['INVOCATIONS'] });
  await next(messages);
  const startedAt = performance.now();
  const made = await Promise.all(Array.from({ length: 60 }, () => app.invoke(functionId)));
  const seen = new Set<string>();
  let count = 0;
  while (seen.size < made.length) {
    for (const id of (await next(messages)).ids) seen.add(id);
    count += 1;
  }
  // One at once, then one for each quarter of a second.
  assert.ok(count <= 1 + (performance.now() - startedAt) / 250, `${count} messages`);
  assert.equal([...seen].sort(), made.map(({ id }) => id).sort());
});

test('few clients are told four times a second, a thousand each three seconds', () => {
  assert.equal([1, 80, 1_000].map(intervalMs), [250, 250, 3_000]);
});

test('a slow client is told of many changes without their ids', () => {
  const stream = new Stream([]);
  const ids = Array.from({ length: 60 }, (_, n) => `a${n}`);
  stream.add('SESSIONS', { ids, version: 1 });
  stream.add('BUILDS', { ids: ['b'], version: 2 });
  stream.add('SESSIONS', { ids, version: 3 });
  assert.equal(stream.take(), [
    { kind: 'BUILDS', ids: ['b'], version: 2 },
    { kind: 'SESSIONS', ids, version: 3 },
  ]);
  stream.add('SESSIONS', { ids, version: 4 });
  stream.add('SESSIONS', { ids: ids.map((id) => `${id}x`), version: 5 });
  stream.add('SESSIONS', { ids: ['one more'], version: 6 });
  assert.equal(stream.take(), [{ kind: 'SESSIONS', ids: [], version: 6 }]);
  stream.add('ALL', { version: 7 });
  stream.add('SESSIONS', { ids: ['s'], version: 8 });
  assert.equal(stream.take(), [{ kind: 'ALL', ids: [], version: 8 }]);
  assert.equal(stream.take(), []);
  const ofBuilds = new Stream(['BUILDS']);
  ofBuilds.add('SESSIONS', { ids, version: 9 });
  assert.equal(ofBuilds.take(), []);
});

test('a client that left between two messages reads everything again', async () => {
  await using lists = openLists();
  const feed = new Feed(lists.projectId, {
    store: lists.store,
    now: () => 1_000,
  });
  using _ = { [Symbol.dispose]: () => feed.close() };
  const [all, sessions] = [new Stream([]), new Stream(['SESSIONS'])];
  feed.streams.add(all);
  await feed.started;
  const began = feed.version;
  assert.equal([feed.hasMissed(all, began), feed.hasMissed(all, undefined)], [false, true]);
  const [of] = addFunctions(lists, lists.projectId, ['title']);
  assert.ok(of);
  // An operation of the store wakes the feed: what was inserted by hand is told with it.
  await lists.store.createSession({ ...NEW_SESSION, id: newId(), projectId: lists.projectId });
  await all.rung();
  const versions = all.take().map(({ version }) => version);
  assert.equal(versions, [began + 1, began + 2, began + 3]);
  for (const [at, version] of versions.entries()) {
    assert.is(feed.hasMissed(all, version), at < 2, 'only the last message was the last');
  }
  assert.is(feed.hasMissed(sessions, began), true);
  assert.is(feed.hasMissed(sessions, feed.version), false);
  assert.is(feed.hasMissed(all, began - 1), true, 'before the feed');
  assert.is(feed.hasMissed(all, feed.version + 1), true, 'no version of this feed');
});

test('a project has a limited number of streams, and one that ends makes room', async () => {
  await using lists = openLists();
  const { console, caller, addProject } = lists;
  const leaving = new AbortController();
  const { call } = caller;
  const own = { ...caller, call: { ...call, signal: leaving.signal } };
  const all = { kinds: [], after: undefined };
  const open = async (by = caller) => {
    const messages = console.watchChanges(all, by)[Symbol.asyncIterator]();
    await messages.next();
    return messages;
  };
  const streams = [];
  for (let n = 0; n < 1_000; n += 1) streams.push(await open(own));
  const fault = await faultOf(open());
  assert.equal([fault.reason, fault.facts['limit']], ['CONCURRENCY_LIMIT', 1_000]);
  const theirs = await open(callerOf(await addProject('other')));
  await streams.pop()?.return?.();
  const last = await open();
  leaving.abort();
  for (const messages of [...streams, theirs, last]) await messages.return?.();
});

test('a stream ends when its key is revoked, another of the project goes on', async () => {
  await using app = await openChanges();
  const functionId = await app.publish({ name: 'title' });
  for (const clients of app.transports) {
    const { key, apiKey } = await app.newKey('default');
    const [theirs, own] = [app.watch(clients, { key }), app.watch(clients)];
    await Promise.all([next(theirs), next(own)]);
    const ended = faultOf(next(theirs));
    const { id } = must(apiKey, 'a key');
    await app.clients.operators.revokeApiKey({ id }, app.asOperator);
    assert.is((await ended).reason, 'API_KEY_INVALID');
    assert.is((await faultOf(next(app.watch(clients, { key })))).reason, 'API_KEY_INVALID');
    const invocation = await app.invoke(functionId);
    const told = await until(own, ({ kind }) => kind === 'INVOCATIONS');
    assert.equal(told.ids, [invocation.id]);
  }
});

test.run();
