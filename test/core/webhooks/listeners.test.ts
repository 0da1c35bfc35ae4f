/** Events as they happen: what `tabern listen` reads. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { Store } from '../../../core/store/types.ts';
import { listenerHandlers } from '../../../core/webhooks/listeners.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, REST, TYPE } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const listeners = suite('core/webhooks/listeners');
type App = ReturnType<typeof bootDeliveries>;

function read(app: App, cursor?: string, more: { limit?: number; wait?: number } = {}) {
  const wanted = { cursor, limit: more.limit, wait: more.wait };
  return app.webhooks.listEvents(wanted, app.caller);
}

const types = ({ data }: Awaited<ReturnType<typeof read>>) => data.map(({ type }) => type);

listeners('a listener receives later events, also without a subscribed webhook', async () => {
  await using app = bootDeliveries();
  app.emit({}, 'before');
  const { data, nextCursor } = await read(app);
  assert.equal(data, []);
  app.emit({ results: 'ü' }, 'after');
  const got = await read(app, nextCursor);
  assert.equal(types(got), [TYPE]);
  const [row] = app.rows('SELECT id, body FROM events');
  assert.is(got.data[0]?.body, String(row?.['body']), 'the envelope, byte for byte');
  assert.is(got.data[0]?.id, row?.['id']);
  assert.equal((await read(app, got.nextCursor)).data, [], 'each event once');
  assert.equal(app.rows('SELECT id FROM deliveries'), []);
});

listeners('events are not kept a minute after the last call', async () => {
  await using app = bootDeliveries();
  const { nextCursor } = await read(app);
  app.clock.advance(59_999);
  app.emit({}, 'kept');
  await read(app, nextCursor);
  app.clock.advance(59_999);
  app.emit({}, 'kept too');
  app.clock.advance(1);
  app.emit({}, 'not kept');
  assert.is((await read(app, nextCursor)).data.length, 2);
});

listeners('a waiting call returns at the first event', async () => {
  await using app = bootDeliveries();
  const { nextCursor } = await read(app);
  const startedAt = performance.now();
  const waiting = read(app, nextCursor, { wait: 25 });
  await read(app, nextCursor);
  app.emit();
  assert.equal(types(await waiting), [TYPE]);
  assert.ok(performance.now() - startedAt < 20_000, 'sooner than the wait was to end');
});

listeners('polls of one project have a limit, and wake for their own events only', async () => {
  await using app = bootDeliveries();
  const { nextCursor: cursor } = await read(app);
  const at = app.clock.now();
  const times = { defaultTimeout: 900, concurrency: 1, createdAt: at, updatedAt: at };
  const other = await app.store.ensureProject({ id: newId(), name: 'other', ...times });
  let reads = 0;
  const store: Store = {
    ...app.store,
    eventsAfter(wanted) {
      reads += 1;
      return app.store.eventsAfter(wanted);
    },
  };
  const { listEvents } = listenerHandlers({ ...REST, store, now: app.clock.now });
  const leaving = new AbortController();
  const call = { ...app.caller.call, signal: leaving.signal };
  const poll = (projectId: string) =>
    listEvents({ cursor, limit: undefined, wait: 25 }, { projectId, call });
  const ended = Promise.allSettled(Array.from({ length: 150 }, () => poll(other.id)));
  const own = poll(app.projectId);
  await until(() => reads >= 101);
  const polled = reads;
  app.emit();
  assert.equal(types(await own), [TYPE]);
  assert.ok(reads - polled < 10, `${reads - polled} reads for one event`);
  leaving.abort();
  const refused = (await ended).filter(({ status }) => status === 'rejected');
  assert.is(refused.length, 50);
  const [first] = refused as PromiseRejectedResult[];
  assert.is((await faultOf(Promise.reject(first?.reason))).reason, 'CONCURRENCY_LIMIT');
});

listeners('the first call does not wait, nor does a disconnected one', async () => {
  await using app = bootDeliveries();
  const startedAt = performance.now();
  const { nextCursor } = await read(app, undefined, { wait: 25 });
  const leaving = new AbortController();
  const call = { ...app.caller.call, signal: leaving.signal };
  const wanted = { cursor: nextCursor, limit: undefined, wait: 25 };
  const waiting = app.webhooks.listEvents(wanted, { ...app.caller, call });
  await read(app, nextCursor);
  leaving.abort();
  assert.equal((await waiting).data, []);
  assert.ok(performance.now() - startedAt < 20_000, 'sooner than the wait was to end');
});

listeners('pages have the order of the events', async () => {
  await using app = bootDeliveries();
  let { nextCursor: cursor } = await read(app);
  for (let n = 0; n < 5; n += 1) app.emit({}, `r${n}`);
  const seen: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const page = await read(app, cursor, { limit: 2 });
    seen.push(...page.data.map(({ body }) => JSON.parse(body).resourceId));
    cursor = page.nextCursor;
  }
  assert.equal(seen, ['r0', 'r1', 'r2', 'r3', 'r4']);
});

listeners('events of other projects, and tests of webhooks, are not listed', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  const at = app.clock.now();
  const other = await app.store.ensureProject({
    id: newId(),
    name: 'other',
    defaultTimeout: 900,
    concurrency: 1,
    createdAt: at,
    updatedAt: at,
  });
  const foreign = { ...app, caller: callerOf(other.id) };
  const theirs = await read(foreign);
  const { nextCursor } = await read(app);
  await app.webhooks.sendTest({ id }, app.caller);
  assert.equal((await read(app, nextCursor)).data, []);
  app.emit();
  assert.equal(types(await read(app, nextCursor)), [TYPE]);
  assert.equal(types(await read(foreign, theirs.nextCursor)), []);
});

for (const [what, cursor, more, reason] of [
  ['a cursor that is none', 'x!', {}, 'INVALID_CURSOR'],
  ['101 at once', undefined, { limit: 101 }, 'INVALID_FIELD'],
  ['a longer wait', undefined, { wait: 26 }, 'INVALID_FIELD'],
] as const) {
  listeners(`a call with ${what} is refused, and registers no listener`, async () => {
    await using app = bootDeliveries();
    assert.is((await faultOf(read(app, cursor, more))).reason, reason);
    assert.equal(app.rows('SELECT project_id FROM listeners'), []);
  });
}

listeners.run();
