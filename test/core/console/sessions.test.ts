/** The console's list of sessions: filters, pages, and what other projects see of it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { ConsoleServiceListSessionsRequest } from '../../../proto/gen/tabern/v1/console.pb.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import {
  ANY,
  addFunctions,
  addInvocations,
  addSessions,
  FIRST_MS,
  idOf,
  type Lists,
  openLists,
  SESSION,
} from './projects.ts';

const test = suite('core/console/sessions');

type Filter = Partial<ConsoleServiceListSessionsRequest>;

/** Of every page, in order, and how many calls they took. */
async function allOf({ console, caller }: Lists, filter: Filter) {
  const ids: string[] = [];
  let [cursor, calls]: [string | undefined, number] = [undefined, 0];
  do {
    const page = await console.listSessions({ ...ANY, ...filter, cursor }, caller);
    assert.ok(page.sessions.length <= (filter.limit ?? 50));
    ids.push(...page.sessions.map(({ id }) => id));
    cursor = page.nextCursor;
    calls += 1;
  } while (cursor !== undefined);
  return { ids, calls };
}

/** Newest first. */
function numbered(count: number, isShown: (n: number) => boolean): string[] {
  return Array.from({ length: count }, (_, n) => n)
    .filter(isShown)
    .map((n) => idOf(SESSION, n))
    .reverse();
}

test('pages contain each session once, newest first', async () => {
  await using lists = openLists();
  addSessions(lists, lists.projectId, 450);
  for (const limit of [undefined, 7, 200]) {
    const { ids } = await allOf(lists, { limit });
    assert.equal(
      ids,
      numbered(450, () => true),
      `${limit}`,
    );
  }
});

test('sessions that are added meanwhile neither repeat nor hide one', async () => {
  await using lists = openLists();
  const { console, caller, projectId, db } = lists;
  addSessions(lists, projectId, 100);
  // Several of one moment: the id decides between them.
  db.exec(`UPDATE sessions SET created_at = ${FIRST_MS}`);
  const seen: string[] = [];
  let cursor: string | undefined;
  let added = 0;
  do {
    const page = await console.listSessions({ ...ANY, limit: 9, cursor }, caller);
    seen.push(...page.sessions.map(({ id }) => id));
    cursor = page.nextCursor;
    db.exec(`
      INSERT INTO sessions (id, project_id, status, region, params, created_at, updated_at,
        expires_at)
      VALUES ('${newId()}', '${projectId}', 'PENDING', 'us-west-2', '{}', ${FIRST_MS + 1}, 0, 0)`);
    added += 1;
  } while (cursor !== undefined);
  assert.ok(added > 5);
  assert.equal(
    seen,
    numbered(100, () => true),
  );
});

test('each filter selects its sessions, alone and together', async () => {
  await using lists = openLists();
  const { projectId } = lists;
  addSessions(lists, projectId, 1_200);
  const [title, other] = addFunctions(lists, projectId, ['Read-Title', 'other']);
  assert.ok(title && other);
  addInvocations(lists, projectId, { of: title, from: 100, count: 20 });
  addInvocations(lists, projectId, { of: other, from: 120, count: 20 });
  const contextId = idOf('01930000', 1);
  const at = (n: number) => new Date(FIRST_MS + n * 1_000);
  const rows: [Filter, (n: number) => boolean][] = [
    [{ status: 'ERROR' }, (n) => n % 100 === 7],
    [{ status: 'RUNNING' }, () => false],
    [{ contextId }, (n) => n % 1_000 === 5],
    [{ contextId, status: 'ERROR' }, () => false],
    [{ functionId: title.functionId }, (n) => n >= 100 && n < 120],
    [{ functionId: title.functionId, status: 'ERROR' }, (n) => n === 107],
    [{ text: 'read-TITLE' }, (n) => n >= 100 && n < 120],
    [{ text: '"order":"77"' }, (n) => n === 77],
    [{ text: idOf(SESSION, 78) }, (n) => n === 78],
    [{ text: '%' }, () => false],
    [{ q: `user_metadata['order']:'79'` }, () => false],
    [{ from: at(1_190) }, (n) => n >= 1_190],
    [{ from: at(10), to: at(20) }, (n) => n >= 10 && n < 20],
    [{ from: at(0), to: at(300), status: 'ERROR' }, (n) => n < 300 && n % 100 === 7],
    [{ region: 'us-west-2', to: at(20) }, (n) => n < 20],
    [{ region: 'eu-central-1' }, () => false],
    [{ region: 'us-west-2', status: 'ERROR' }, (n) => n % 100 === 7],
  ];
  for (const [filter, isShown] of rows) {
    const { ids } = await allOf(lists, { ...filter, limit: 8 });
    assert.equal(ids, numbered(1_200, isShown), JSON.stringify(filter));
  }
});

test('a metadata query pages over what matches, within its other filters', async () => {
  await using lists = openLists();
  const { projectId, db } = lists;
  addSessions(lists, projectId, 300);
  db.exec(`
    INSERT INTO session_metadata (project_id, path, value, session_id)
    SELECT project_id, '["job"]', 'a', id FROM sessions WHERE created_at % 3000 = 0`);
  const q = `user_metadata['job']:'a'`;
  assert.equal(
    (await allOf(lists, { q, limit: 7 })).ids,
    numbered(300, (n) => n % 3 === 0),
  );
  const failed = await allOf(lists, { q, status: 'ERROR', limit: 7 });
  assert.equal(
    failed.ids,
    numbered(300, (n) => n % 300 === 207),
  );
  const to = new Date(FIRST_MS + 30_000);
  const early = await allOf(lists, { q, to, limit: 7 });
  assert.equal(
    early.ids,
    numbered(30, (n) => n % 3 === 0),
  );
});

test('a label pages over the sessions that have it, within its other filters', async () => {
  await using lists = openLists();
  const { projectId, db, console, caller } = lists;
  addSessions(lists, projectId, 300);
  db.exec(`
    INSERT INTO labels (id, project_id, name, name_key, created_at, updated_at)
    VALUES ('l1', '${projectId}', 'Paid', 'paid', 0, 0), ('l2', '${projectId}', 'b', 'b', 0, 0);
    INSERT INTO session_labels (label_id, session_id, project_id)
    SELECT 'l1', id, project_id FROM sessions WHERE created_at % 3000 = 0;
    INSERT INTO session_labels (label_id, session_id, project_id)
    SELECT 'l2', id, project_id FROM sessions WHERE created_at % 3000 = 0 LIMIT 1;
    INSERT INTO session_metadata (project_id, path, value, session_id)
    SELECT project_id, '["job"]', 'a', id FROM sessions WHERE created_at % 2000 = 0`);
  const rows: [Filter, (n: number) => boolean][] = [
    [{ label: ' PAID' }, (n) => n % 3 === 0],
    [{ label: 'paid', status: 'ERROR' }, (n) => n % 300 === 207],
    [{ label: 'paid', q: `user_metadata['job']:'a'` }, (n) => n % 6 === 0],
    [{ label: 'paid', to: new Date(FIRST_MS + 30_000) }, (n) => n % 3 === 0 && n < 30],
    [{ label: 'unknown' }, () => false],
  ];
  for (const [filter, isShown] of rows) {
    const { ids } = await allOf(lists, { ...filter, limit: 7 });
    assert.equal(ids, numbered(300, isShown), JSON.stringify(filter));
  }
  const one = await console.getSession({ id: idOf(SESSION, 3) }, caller);
  assert.equal(one.session?.labels, ['Paid']);
  const { results } = await console.search({ q: 'AID' }, caller);
  assert.equal(
    results.slice(0, 2).map(({ id, matched, text }) => [id, matched, text]),
    [297, 294].map((n) => [idOf(SESSION, n), 'label', 'Paid']),
  );
});

test('a filter that matches nothing examines a limited number of rows at a time', async () => {
  await using lists = openLists();
  addSessions(lists, lists.projectId, 25_000);
  const nothing = await allOf(lists, { status: 'PENDING' });
  assert.equal([nothing.ids, nothing.calls], [[], 3]);
  const text = await allOf(lists, { text: 'no such text', to: new Date(FIRST_MS + 5_000_000) });
  assert.equal([text.ids, text.calls], [[], 3]);
});

test('of the named sessions those that run are told, with keys, and none of others', async () => {
  await using lists = openLists();
  const { console, caller, projectId, db } = lists;
  addSessions(lists, projectId, 4);
  const ids = [0, 1, 2, 3].map((n) => idOf(SESSION, n));
  const running = async (named: string[], by = caller) =>
    (await console.listRunningSessions({ ids: named }, by)).sessions;
  assert.equal(await running(ids), []); // all have ended
  db.exec(`
    UPDATE sessions SET status = 'RUNNING' WHERE id IN ('${ids.slice(0, 3).join(`','`)}');
    INSERT INTO jobs (id, project_id, kind, state, created_at, expires_at, released_at)
    SELECT id, project_id, 'session', 'running', 0, 0, IIF(id = '${ids[1]}', 1, NULL)
    FROM sessions WHERE status = 'RUNNING'`);
  assert.equal(
    (await running([...ids, ids[0]?.toUpperCase() ?? ''])).map(({ id }) => id),
    [ids[0], ids[2]], // the second is released
  );
  assert.match((await running(ids))[0]?.signingKey ?? '', `key of ${ids[0]}`);
  const other = await lists.addProject('other');
  assert.equal(await running(ids, callerOf(other)), []);
  for (const wrong of [[], Array.from({ length: 101 }, () => newId()), ['x']]) {
    const fault = await faultOf(running(wrong));
    assert.is(fault.facts['field'], 'ids');
  }
  const long = console.listSessions({ ...ANY, region: 'x'.repeat(33) }, caller);
  assert.is((await faultOf(long)).facts['field'], 'region');
});

test('a session is shown with its invocation, and without what nobody published', async () => {
  await using lists = openLists();
  const { console, caller, projectId, db } = lists;
  addSessions(lists, projectId, 8);
  const [of] = addFunctions(lists, projectId, ['title']);
  assert.ok(of);
  addInvocations(lists, projectId, { of, from: 7, count: 1 });
  const read = async (n: number) =>
    (await console.getSession({ id: idOf(SESSION, n) }, caller)).session;
  const own = await read(7);
  assert.equal(
    [own?.functionId, own?.functionName, own?.invocationId],
    [of.functionId, 'title', idOf('01910000', 7)],
  );
  assert.equal(own?.userMetadata, { order: '7' });
  assert.equal([own?.startedAt?.getTime(), own?.isReleased], [FIRST_MS, false]);
  assert.is((await read(6))?.invocationId, undefined);
  db.exec('UPDATE functions SET deleted_at = 1');
  assert.equal(
    [(await read(7))?.functionName, (await read(7))?.invocationId],
    [undefined, undefined],
  );
});

test('another project finds nothing, and its cursors are refused', async () => {
  await using lists = openLists();
  const { console, caller, projectId } = lists;
  addSessions(lists, projectId, 3);
  const theirs = callerOf(await lists.addProject('other'));
  assert.equal(await console.listSessions(ANY, theirs), { sessions: [], nextCursor: undefined });
  const id = idOf(SESSION, 1);
  assert.is((await faultOf(console.getSession({ id }, theirs))).reason, 'RESOURCE_NOT_FOUND');
  const { nextCursor: cursor } = await console.listSessions({ ...ANY, limit: 1 }, caller);
  assert.ok(cursor);
  const builds = console.listBuilds({ ...ANY, cursor }, caller);
  for (const refused of [console.listSessions({ ...ANY, cursor }, theirs), builds]) {
    const fault = await faultOf(refused);
    assert.equal([fault.reason, fault.facts], ['INVALID_CURSOR', { field: 'cursor' }]);
  }
});

test('a wrong filter is refused, and its field named', async () => {
  await using lists = openLists();
  const { console, caller } = lists;
  const wrong: [string, Filter][] = [
    ['limit', { limit: 0 }],
    ['limit', { limit: 201 }],
    ['text', { text: '' }],
    ['text', { text: 'x'.repeat(129) }],
    ['q', { q: 'user_metadata' }],
    ['functionId', { functionId: 'x' }],
    ['contextId', { contextId: '' }],
    ['to', { from: new Date(2), to: new Date(1) }],
    ['cursor', { cursor: '' }],
    ['cursor', { cursor: 'AAAA' }],
  ];
  for (const [field, filter] of wrong) {
    const fault = await faultOf(console.listSessions({ ...ANY, ...filter }, caller));
    assert.is(fault.facts['field'], field, JSON.stringify(filter));
    assert.match(fault.message, `\`${field}\``);
  }
});

test.run();
