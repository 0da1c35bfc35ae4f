/** The console's functions: figures of their runs, versions, what a form needs, lines of a log. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { figuresOf, functionFigures } from '../../../core/console/function-figures.ts';
import type { Store } from '../../../core/store/types.ts';
import { must } from '../../../proto/common/must.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import {
  addFunctions,
  addInvocations,
  addSessions,
  FIRST_MS,
  HOUR_MS,
  INVOCATION,
  idOf,
  type Lists,
  openLists,
} from './projects.ts';

const test = suite('core/console/functions');

const ALL = { limit: undefined, cursor: undefined };

/** Moves the runs so that the first began this long before the service's time. */
function moveRuns({ db }: Lists, agoMs: number): void {
  const by = 30 * 24 * HOUR_MS - agoMs;
  db.exec(`UPDATE invocations SET created_at = created_at + ${by},
    started_at = created_at + ${by} + 10, ended_at = created_at + ${by} + 110`);
}

/** Functions `quiet` and `title`; `title` has runs 0 to count - 1, a second apart. */
async function openRuns(count: number) {
  const lists = openLists();
  addSessions(lists, lists.projectId, count);
  const [quiet, title] = addFunctions(lists, lists.projectId, ['quiet', 'title']);
  const published = { title: must(title, 'a function'), quiet: must(quiet, 'a function') };
  addInvocations(lists, lists.projectId, { of: published.title, from: 0, count });
  const stranger = callerOf(await lists.addProject('other'));
  return { ...lists, ...published, stranger };
}

test('functions are listed with the outcome of their runs of the last 24 hours', async () => {
  await using runs = await openRuns(300);
  moveRuns(runs, 2 * HOUR_MS);
  const { functions, counted, countedFrom } = await runs.console.listFunctions(ALL, runs.caller);
  const [title, quiet] = functions;
  assert.equal([title?.name, title?.ended, title?.failed, title?.versions], ['title', 300, 3, 1]);
  assert.equal([title?.p50Ms, title?.p95Ms], [100, 100]);
  assert.equal(title?.hours, [...Array(22).fill(0), 300, 0]);
  assert.equal([quiet?.name, quiet?.ended, quiet?.p50Ms], ['quiet', 0, undefined]);
  assert.equal([counted, countedFrom], [300, undefined]);
});

test('older runs are not counted, and at most the newest 10,000 are', async () => {
  await using runs = await openRuns(10_500);
  moveRuns(runs, 25 * HOUR_MS);
  const cut = await runs.console.listFunctions(ALL, runs.caller);
  assert.is(cut.counted, 10_500 - HOUR_MS / 1_000, 'those of the last 24 hours');
  await using many = await openRuns(10_500);
  moveRuns(many, 3 * HOUR_MS);
  const { counted, countedFrom, functions } = await many.console.listFunctions(ALL, many.caller);
  const start = FIRST_MS + 30 * 24 * HOUR_MS - 3 * HOUR_MS;
  assert.equal([counted, Number(countedFrom) - start], [10_000, 500_000]);
  assert.is(functions[0]?.ended, 10_000);
});

test('a count is kept for 5 s, for one project', async () => {
  let [at, counts] = [1_000, 0];
  const consoleFunctionRuns: Store['consoleFunctionRuns'] = async () => {
    counts += 1;
    return [];
  };
  const figures = functionFigures({ store: { consoleFunctionRuns }, now: () => at });
  await figures('one');
  await figures('one');
  assert.is(counts, 1);
  await figures('another');
  assert.is(counts, 2);
  at += 5_000;
  await figures('one');
  assert.is(counts, 3);
});

test('percentiles are those of the nearest rank, and only of runs that started', () => {
  const run = (lengthMs: number | undefined) => ({
    id: newId(),
    functionId: 'f',
    status: 'COMPLETED' as const,
    createdAt: 0,
    startedAt: lengthMs === undefined ? null : 5,
    endedAt: 5 + (lengthMs ?? 0),
  });
  const lengths = Array.from({ length: 100 }, (_, n) => n + 1);
  const { p50Ms, p95Ms, ended } = figuresOf([run(undefined), ...lengths.map(run)], 0);
  assert.equal([p50Ms, p95Ms, ended], [50, 95, 101]);
  assert.equal(figuresOf([run(undefined)], 0).p95Ms, undefined);
});

test('pages of functions go on by their cursor, which another list refuses', async () => {
  await using lists = openLists();
  const { console, caller, projectId } = lists;
  addFunctions(lists, projectId, ['a', 'b', 'c']);
  const first = await console.listFunctions({ ...ALL, limit: 2 }, caller);
  const cursor = must(first.nextCursor, 'a cursor');
  const second = await console.listFunctions({ limit: 2, cursor }, caller);
  assert.equal(
    [...first.functions, ...second.functions].map(({ name }) => name),
    ['c', 'b', 'a'],
  );
  assert.is(second.nextCursor, undefined);
  const id = must(first.functions[0], 'a function').id;
  const fault = await faultOf(console.listVersions({ id, limit: 2, cursor }, caller));
  assert.is(fault.reason, 'INVALID_CURSOR');
});

test('a form gets the schema of the newest version and the params of the newest run', async () => {
  await using runs = await openRuns(3);
  const { console, caller, db, title } = runs;
  db.exec(`UPDATE versions SET params_schema = '{"type":"object"}';
    UPDATE invocations SET params = '{"n":2}' WHERE id = '${idOf(INVOCATION, 2)}'`);
  const found = await console.getFunction({ id: title.functionId }, caller);
  assert.equal(
    [found.name, found.versionId, found.paramsSchemaJson],
    ['title', title.versionId, '{"type":"object"}'],
  );
  assert.equal([found.invocationId, found.lastParamsJson], [idOf(INVOCATION, 2), '{"n":2}']);
  const quiet = await console.getFunction({ id: runs.quiet.functionId }, caller);
  assert.equal([quiet.invocationId, quiet.lastParamsJson], [undefined, undefined]);
});

test('versions have what their builds stored', async () => {
  await using runs = await openRuns(1);
  const { versions } = await runs.console.listVersions(
    { ...ALL, id: runs.title.functionId },
    runs.caller,
  );
  assert.is(versions.length, 1);
  const [version] = versions;
  assert.equal([version?.id, version?.entrypoint], [runs.title.versionId, 'a.ts']);
  assert.equal(
    [version?.archiveBytes, version?.bundleBytes, version?.hasSchema],
    [1, undefined, false],
  );
});

test('lines of a log are read on from a number, 1,000 at a time', async () => {
  await using runs = await openRuns(1);
  const { console, caller, db } = runs;
  const id = idOf(INVOCATION, 0);
  db.exec(`WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers
      WHERE n < 1499)
    INSERT INTO log_lines (owner_id, number, level, message, at)
    SELECT '${id}', n, 'log', 'line ' || n, n FROM numbers`);
  const first = await console.listLogLines({ id, from: undefined }, caller);
  assert.equal([first.lines.length, first.next, first.hasMore], [1_000, 1_000, true]);
  const second = await console.listLogLines({ id, from: first.next }, caller);
  assert.equal(
    [second.lines[0]?.message, second.next, second.hasMore],
    ['line 1000', 1_500, false],
  );
  const none = await console.listLogLines({ id, from: 1_500 }, caller);
  assert.equal(none, { lines: [], next: 1_500, hasMore: false });
});

test('another project, and a deleted function, are not found', async () => {
  await using runs = await openRuns(1);
  const { console, caller, stranger, db, title } = runs;
  const { functionId: id } = title;
  const [run, build] = [idOf(INVOCATION, 0), await buildOf(runs)];
  const calls = (by: typeof caller) => [
    () => console.getFunction({ id }, by),
    () => console.listVersions({ ...ALL, id }, by),
    () => console.listLogLines({ id: run, from: undefined }, by),
    () => console.listLogLines({ id: build, from: undefined }, by),
  ];
  for (const call of calls(caller)) await call();
  for (const call of calls(stranger)) {
    assert.is((await faultOf(call())).reason, 'RESOURCE_NOT_FOUND');
  }
  assert.equal((await console.listFunctions(ALL, stranger)).functions, []);
  db.exec('UPDATE functions SET deleted_at = 1');
  for (const call of calls(caller)) {
    assert.is((await faultOf(call())).reason, 'RESOURCE_NOT_FOUND');
  }
  assert.equal((await console.listFunctions(ALL, caller)).functions, []);
});

async function buildOf({ console, caller }: Lists): Promise<string> {
  const asked = { limit: 1, from: undefined, to: undefined };
  return must((await console.listBuilds(asked, caller)).builds[0], 'a build').id;
}

test.run();
