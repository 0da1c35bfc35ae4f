/** The console's lists of invocations and builds, the overview, counts and search. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type {
  ConsoleServiceListInvocationsRequest,
  CountByRequest,
} from '../../../proto/gen/tabern/v1/console.pb.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import {
  ANY,
  addFunctions,
  addInvocations,
  addSessions,
  FIRST_MS,
  HOUR_MS,
  INVOCATION,
  idOf,
  type Lists,
  openLists,
  SESSION,
} from './projects.ts';

const test = suite('core/console/work');

const HOUR_S = HOUR_MS / 1_000;

/** Of two functions: `title` ran 0 to 599, `other` 600 to 799. Each 100th run failed. */
async function openWork() {
  const lists = openLists();
  addSessions(lists, lists.projectId, 800);
  const [title, other] = addFunctions(lists, lists.projectId, ['title', 'other']);
  const published = { title: must(title, 'a function'), other: must(other, 'a function') };
  addInvocations(lists, lists.projectId, { of: published.title, from: 0, count: 600 });
  addInvocations(lists, lists.projectId, { of: published.other, from: 600, count: 200 });
  const stranger = callerOf(await lists.addProject('other'));
  return { ...lists, ...published, stranger };
}

type Filter = Partial<ConsoleServiceListInvocationsRequest>;

async function allOf({ console, caller }: Pick<Lists, 'console' | 'caller'>, filter: Filter) {
  const numbers: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await console.listInvocations({ ...ANY, limit: 9, ...filter, cursor }, caller);
    numbers.push(...page.invocations.map(({ id }) => Number.parseInt(id.slice(-12), 16)));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return numbers;
}

const numbers = (isShown: (n: number) => boolean) =>
  Array.from({ length: 800 }, (_, n) => 799 - n).filter(isShown);

test('invocations of all functions are listed, each filter selects its own', async () => {
  await using work = await openWork();
  const at = (n: number) => new Date(FIRST_MS + n * 1_000);
  const { functionId } = work.title;
  const rows: [Filter, (n: number) => boolean][] = [
    [{}, () => true],
    [{ status: 'FAILED' }, (n) => n % 100 === 7],
    [{ status: 'COMPLETED', from: at(90), to: at(110) }, (n) => n >= 90 && n < 110 && n !== 107],
    [{ functionId }, (n) => n < 600],
    [{ functionId, status: 'FAILED' }, (n) => n < 600 && n % 100 === 7],
    [{ text: 'OTH' }, (n) => n >= 600],
    [{ text: idOf(INVOCATION, 3) }, (n) => n === 3],
    [{ status: 'RUNNING' }, () => false],
  ];
  for (const [filter, isShown] of rows) {
    assert.equal(await allOf(work, filter), numbers(isShown), JSON.stringify(filter));
  }
});

test('a row has the cause of a failure, and neither params nor results', async () => {
  await using work = await openWork();
  const { console, caller, db } = work;
  const long = 'x'.repeat(5_000);
  db.exec(`UPDATE invocations SET cause = '{"code":"WORKLOAD_ERROR","message":"${long}"}'
    WHERE id = '${idOf(INVOCATION, 707)}'`);
  const { invocations } = await console.listInvocations({ ...ANY, limit: 200 }, caller);
  const failed = must(
    invocations.find(({ id }) => id === idOf(INVOCATION, 707)),
    'the failed one',
  );
  assert.equal([failed.causeCode, failed.causeMessage?.length], ['WORKLOAD_ERROR', 512]);
  assert.equal([failed.functionName, failed.sessionId], ['other', idOf(SESSION, 707)]);
  const done = must(invocations[0], 'the newest');
  assert.equal([done.status, done.causeCode], ['COMPLETED', undefined]);
  assert.equal(
    Object.keys(done).filter((name) => /params|results/i.test(name)),
    [],
  );
});

test('another project’s function has no invocations, places or counts here', async () => {
  await using work = await openWork();
  const { console, stranger: caller } = work;
  const { functionId } = work.title;
  const from = new Date(FIRST_MS);
  const empty = { invocations: [], nextCursor: undefined };
  assert.equal(await console.listInvocations({ ...ANY, functionId }, caller), empty);
  const counted = { kind: 'INVOCATIONS', bucket: HOUR_S, group: undefined, from, to: undefined };
  const { buckets } = await console.countBy({ ...counted, functionId } as CountByRequest, caller);
  assert.equal(buckets, []);
  const overview = await console.getOverview({}, caller);
  assert.equal([overview.hasSessions, overview.failingFunctions], [false, []]);
  assert.equal((await console.search({ q: 'title' }, caller)).results, []);
  assert.equal((await console.search({ q: functionId }, caller)).results, []);
});

test('a long list of another project’s function has no cursor here', async () => {
  await using lists = openLists();
  const { console, caller, projectId } = lists;
  addSessions(lists, projectId, 10_001);
  const [of] = addFunctions(lists, projectId, ['title']);
  const { functionId } = must(of, 'a function');
  addInvocations(lists, projectId, { of: must(of, 'a function'), from: 0, count: 10_001 });
  const pending = { ...ANY, functionId, status: 'PENDING' } as const;
  assert.ok((await console.listInvocations(pending, caller)).nextCursor, 'its own goes on');
  const stranger = callerOf(await lists.addProject('other'));
  const none = { invocations: [], nextCursor: undefined };
  assert.equal(await console.listInvocations(pending, stranger), none);
});

test('builds are listed with what they published', async () => {
  await using work = await openWork();
  const { console, caller, db, title } = work;
  const { builds } = await console.listBuilds(ANY, caller);
  assert.equal(
    builds.map(({ status, published }) => [status, published.map(({ name }) => name)]),
    [['COMPLETED', ['other', 'title']]],
  );
  const { functionId } = title;
  assert.is((await console.listBuilds({ ...ANY, functionId }, caller)).builds.length, 1);
  assert.is((await console.listBuilds({ ...ANY, status: 'FAILED' }, caller)).builds.length, 0);
  db.exec('UPDATE functions SET deleted_at = 1');
  assert.is((await console.listBuilds(ANY, caller)).builds.length, 0);
});

test('the overview counts what runs and names what failed', async () => {
  await using work = await openWork();
  const { console, caller, db, projectId } = work;
  db.exec(`
    UPDATE invocations SET created_at = created_at + ${30 * 24 * HOUR_MS} - ${HOUR_MS};
    UPDATE queues SET ready = 3, running = 2 WHERE kind = 'invocation';
    INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status,
      first_failure_at, created_at, updated_at)
    VALUES ('w1', '${projectId}', 'https://a.example/', 'a', '[]', 'enabled', 5, 1, 1),
      ('w2', '${projectId}', 'https://b.example/', 'b', '[]', 'disabled', 4, 1, 1),
      ('w3', '${projectId}', 'https://c.example/', 'c', '[]', 'enabled', NULL, 1, 1)`);
  const overview = await console.getOverview({}, caller);
  assert.equal([overview.invocations, overview.queued, overview.sessions], [2, 3, 0]);
  assert.equal(
    overview.failingFunctions.map(({ name, failed, invocationId, causeMessage }) => {
      return [name, failed, invocationId, causeMessage];
    }),
    [
      ['title', 6, idOf(INVOCATION, 507), 'no 507'],
      ['other', 2, idOf(INVOCATION, 707), 'no 707'],
    ],
  );
  assert.equal(
    overview.failingWebhooks.map(({ id, status }) => [id, status]),
    [
      ['w2', 'DISABLED'],
      ['w1', 'ENABLED'],
    ],
  );
});

const COUNT: CountByRequest = {
  kind: 'SESSIONS',
  bucket: 100,
  group: undefined,
  from: new Date(FIRST_MS),
  to: undefined,
  functionId: undefined,
};

test('counts are by bucket and group', async () => {
  await using work = await openWork();
  const { console, caller } = work;
  const to = new Date(FIRST_MS + 250_000);
  const byStatus = await console.countBy({ ...COUNT, to, group: 'status' }, caller);
  assert.equal(
    byStatus.buckets.map(({ at, key, count }) => `${Number(at) - FIRST_MS} ${key} ${count}`).sort(),
    [
      ...['0 COMPLETED 99', '0 ERROR 1', '100000 COMPLETED 99', '100000 ERROR 1'],
      ...['200000 COMPLETED 49', '200000 ERROR 1'],
    ].sort(),
  );
  assert.equal(byStatus.completeFrom, COUNT.from);
  const { functionId } = work.title;
  const runs = { ...COUNT, kind: 'INVOCATIONS', bucket: HOUR_S, functionId } as const;
  const ofTitle = await console.countBy({ ...runs, to }, caller);
  assert.equal(
    ofTitle.buckets.map(({ count }) => count),
    [250],
  );
});

test('sessions are counted by why they ended', async () => {
  await using lists = openLists();
  const { console, caller, projectId, db } = lists;
  addSessions(lists, projectId, 60);
  const reasons: [string, string | null, string][] = [
    ['COMPLETED', 'its last client has left', 'left'],
    ['COMPLETED', 'released by its user', 'other'],
    ['TIMED_OUT', 'session timed out', 'timeout'],
    ['ERROR', 'the browser was lost: it used more than 512 MiB of memory', 'browser_lost'],
    ['ERROR', 'the browser was lost', 'browser_lost'],
    ['COMPLETED', null, 'function'],
    ['ERROR', null, 'function_failed'],
    ['COMPLETED', 'the invocation was cancelled', 'function'],
    ['TIMED_OUT', 'the invocation did not end within its time limit', 'function_failed'],
    ['ERROR', 'The runner was lost.', 'runner_lost'], // by an earlier version
    ['RUNNING', null, 'running'],
    ['PENDING', null, 'pending'],
    ['ERROR', `${'x'.repeat(500)}: y`, 'other'],
  ];
  db.exec('DELETE FROM sessions WHERE rowid > 13');
  const all = reasons.map(([, , label]) => label);
  for (const [n, [status, reason]] of reasons.entries()) {
    db.prepare('UPDATE sessions SET status = ?, end_reason = ? WHERE id = ?').run(
      ...[status, reason, idOf(SESSION, n)],
    );
  }
  const { buckets } = await console.countBy(
    { ...COUNT, group: 'reason', bucket: HOUR_S, to: new Date(FIRST_MS + 60_000) },
    caller,
  );
  const counted = Object.fromEntries(buckets.map(({ key, count }) => [key, count]));
  const expected = Object.fromEntries(all.map((one) => [one, all.filter((x) => x === one).length]));
  assert.equal(counted, expected);
});

test('at most 50,000 rows are counted, the newest, and the answer says from when on', async () => {
  await using lists = openLists();
  const { console, caller } = lists;
  addSessions(lists, lists.projectId, 60_000);
  const { buckets, completeFrom } = await console.countBy(
    { ...COUNT, bucket: HOUR_S, to: new Date(FIRST_MS + 60_000_000) },
    caller,
  );
  assert.is(
    buckets.reduce((sum, { count }) => sum + count, 0),
    50_000,
  );
  const whole = Math.ceil(10_000 / HOUR_S) * HOUR_MS;
  assert.is(Number(completeFrom) - FIRST_MS, whole);
  const complete = buckets.filter(({ at }) => Number(at) >= Number(completeFrom));
  assert.ok(complete.slice(0, -1).every(({ count }) => count === HOUR_S));
});

test('a wrong count is refused, and its field named', async () => {
  await using lists = openLists();
  const { console, caller } = lists;
  const wrong: [string, Partial<CountByRequest>][] = [
    ['kind', { kind: undefined }],
    ['kind', { kind: 'CONTEXTS' }],
    ['bucket', { bucket: 0 }],
    ['bucket', { bucket: 1 }],
    ['group', { group: 'function' }],
    ['group', { group: 'reason', kind: 'BUILDS' }],
    ['functionId', { functionId: idOf(SESSION, 1) }],
    ['from', { from: undefined }],
    ['to', { to: new Date(0) }],
  ];
  for (const [field, one] of wrong) {
    const fault = await faultOf(console.countBy({ ...COUNT, ...one }, caller));
    assert.is(fault.facts['field'], field, JSON.stringify(one));
  }
});

test('search finds ids, names, metadata and URLs, in this order', async () => {
  await using work = await openWork();
  const { console, caller, db, projectId, title } = work;
  db.exec(`
    INSERT INTO recordings (session_id, page_id, project_id, lease_id, url, start_ms, end_ms,
      created_at)
    VALUES ('${idOf(SESSION, 790)}', 0, '${projectId}', 'l', 'https://Shop.example/', 0, 9, 1)`);
  const found = async (q: string) =>
    (await console.search({ q }, caller)).results.map(({ kind, id, matched }) => {
      return `${kind} ${id} ${matched}`;
    });
  assert.equal(await found(idOf(SESSION, 5)), [`SESSIONS ${idOf(SESSION, 5)} id`]);
  assert.equal(await found(idOf(INVOCATION, 5).toUpperCase()), [
    `INVOCATIONS ${idOf(INVOCATION, 5)} id`,
  ]);
  assert.equal(await found('TITLE'), [`FUNCTIONS ${title.functionId} name`]);
  assert.equal(await found('"order":"71"'), [`SESSIONS ${idOf(SESSION, 71)} metadata`]);
  assert.equal(await found('shop.EXAMPLE'), [`SESSIONS ${idOf(SESSION, 790)} url`]);
  assert.is((await found(SESSION)).length, 20);
  assert.equal(await found('nothing like it'), []);
  for (const [field, wrong] of [
    ['q', { q: '' }],
    ['q', { q: 'x'.repeat(129) }],
    ['limit', { q: 'x', limit: 51 }],
  ] as const) {
    assert.is((await faultOf(console.search(wrong, caller))).facts['field'], field);
  }
});

test('the events of a session are those that its rows tell', async () => {
  await using work = await openWork();
  const { console, caller, db, projectId, stranger } = work;
  const id = idOf(SESSION, 7);
  db.exec(`
    INSERT INTO recordings (session_id, page_id, project_id, lease_id, url, start_ms, end_ms,
      created_at, completed_at)
    VALUES ('${id}', 0, '${projectId}', 'l', 'https://a.example/', 100, 900, 1, 2);
    UPDATE sessions SET started_at = created_at + 50, ended_at = created_at + 9000,
      end_reason = 'its browser was lost' WHERE id = '${id}'`);
  const { events } = await console.listSessionEvents({ id }, caller);
  const start = FIRST_MS + 7_000;
  assert.equal(
    events.map(({ type, at, text }) => [type, Number(at) - start, text]),
    [
      ['created', 0, undefined],
      ['started', 50, undefined],
      ['page', 150, 'https://a.example/'],
      ['ended', 9_000, 'its browser was lost'],
    ],
  );
  assert.is(
    (await faultOf(console.listSessionEvents({ id }, stranger))).reason,
    'RESOURCE_NOT_FOUND',
  );
});

test.run();
