/** Old logs, invocations and builds are removed, each after its own time; those in use are kept. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idAt } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { type Bench, ENGINES, openBench } from '../store/engines.ts';

const DAY_MS = 86_400_000;
const [LOGS, INVOCATIONS, BUILDS] = [10, 20, 30];

/** Runs the clean-up as after so many days. */
function cleanIn(bench: Bench, days: number, closing = new AbortController()): Promise<void> {
  const keptMs = {
    logs: LOGS * DAY_MS,
    invocations: INVOCATIONS * DAY_MS,
    builds: BUILDS * DAY_MS,
  };
  const options = { store: bench.store, keptMs, signal: closing.signal };
  return purgeAt(Date.now() + days * DAY_MS, Object.keys(keptMs), options);
}

/** An invocation that printed something and has ended, by default. */
async function run(
  bench: Bench,
  projectId: string,
  version: { functionId: string; versionId: string },
  isEnded = true,
): Promise<string> {
  const { store } = bench;
  const { id } = await bench.accept(projectId, version, { at: Date.now() });
  const { leaseId } = must((await bench.lease('invocation', 1, Date.now()))[0], 'an invocation');
  const lines = [{ message: 'hello', at: 0, level: 'log' }];
  const limit = { maxBytes: 1_000, linesMax: 10, marker: '' };
  await store.appendLogs({ leaseId, first: 0, lines, ...limit });
  const outcome = { kind: 'success', results: null } as const;
  const end = { leaseId, outcome, sessionStartedAt: null, at: Date.now() };
  if (isEnded) await store.completeInvocation(end);
  return id;
}

for (const engine of ENGINES) {
  const test = suite(`core/work-retention/${engine.name}`);

  test('a log is removed before its invocation, and neither while it runs', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const version = await bench.publish(projectId);
    const ended = await run(bench, projectId, version);
    const running = await run(bench, projectId, version, false);
    await cleanIn(bench, LOGS - 1);
    assert.is((await store.listLogs(ended)).length, 1);
    await cleanIn(bench, LOGS + 1);
    assert.equal(await store.listLogs(ended), []);
    assert.ok(await store.getInvocation({ id: ended, projectId }));
    await cleanIn(bench, INVOCATIONS + 1);
    assert.is(await store.getInvocation({ id: ended, projectId }), undefined);
    assert.ok(await store.getInvocation({ id: running, projectId }));
  });

  test('an operation removes no more rows than its limit, however long the log', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id } = await bench.accept(projectId, await bench.publish(projectId), {
      at: Date.now(),
    });
    const { leaseId } = must((await bench.lease('invocation', 1, Date.now()))[0], 'an invocation');
    const lines = Array.from({ length: 5 }, () => ({ message: 'a', at: 0, level: 'log' }));
    const limit = { maxBytes: 1_000, linesMax: 10, marker: '' };
    await store.appendLogs({ leaseId, first: 0, lines, ...limit });
    const outcome = { kind: 'success', results: null } as const;
    await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: Date.now() });
    const before = Date.now() + DAY_MS;
    const purge = { before, beforeId: idAt(before), max: 3 };
    assert.is(await store.purgeInvocations(purge), 3);
    assert.is((await store.listLogs(id)).length, 2);
    assert.ok(await store.getInvocation({ id, projectId }));
    assert.is(await store.purgeInvocations(purge), 3);
    assert.is(await store.getInvocation({ id, projectId }), undefined);
    assert.is(await store.purgeInvocations(purge), 0);
  });

  test('the long log of a build is removed in several operations, then the build', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    await bench.publish(projectId, 'f', 5);
    await bench.publish(projectId, 'f', 1);
    await bench.publish(projectId, 'f', 2);
    const builds = async () => {
      const wanted = { projectId, status: undefined, offset: 0, limit: 10 };
      return (await store.listBuilds(wanted)).rows.map(({ build }) => build.id).reverse();
    };
    const [first = '', second = '', third = ''] = await builds();
    const before = Date.now() + DAY_MS;
    const purge = async (after: string, max: number) => {
      const ends = { before, beforeId: idAt(before), after, max };
      const { removed, last } = await store.purgeBuilds(ends);
      const lines = await Promise.all([first, second, third].map((id) => store.listLogs(id)));
      return [removed, last, ...lines.map(({ length }) => length)];
    };
    assert.equal(await purge('', 4), [0, '', 2, 1, 2], 'a version and three lines');
    assert.equal(await purge('', 4), [1, first, 0, 1, 2], 'two lines, the build, a version');
    assert.equal(await builds(), [second, third]);
    assert.equal(await purge(first, 4), [1, undefined, 0, 0, 2], 'the newest stays');
    assert.equal(await builds(), [third]);
    await cleanIn(bench, BUILDS - 1);
    assert.is((await store.listLogs(third)).length, 0);
  });

  test('an old version without invocations is removed; the newest keeps its blobs', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const first = await bench.publish(projectId);
    await run(bench, projectId, first);
    const second = await bench.publish(projectId);
    const builds = async () => {
      const wanted = { projectId, status: undefined, offset: 0, limit: 10 };
      return (await store.listBuilds(wanted)).rows.map(({ build }) => build.id);
    };
    const all = await builds();
    assert.is(all.length, 2);
    await cleanIn(bench, INVOCATIONS - 1);
    assert.equal(await builds(), all);
    await cleanIn(bench, BUILDS + 1);
    assert.equal(await builds(), [must(all[0], 'the newest')]);
    const found = await store.getFunction({ id: second.functionId, projectId });
    assert.ok(found);
    const old = { before: Date.now() + 1e9, max: 10 };
    assert.is((await store.removeUnusedBlobs(old)).length, 2, 'archive and bundle of the first');
    await cleanIn(bench, 10 * BUILDS);
    assert.equal(await builds(), [must(all[0], 'the newest')]);
  });

  test('one pass removes more than a batch, unless the signal aborts', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 2_000);
    const version = await bench.publish(projectId);
    const at = Date.now();
    const count = 1_050;
    const accept = () => bench.accept(projectId, version, { at, queueMax: 2_000, waitUntil: at });
    const ids = (await inGroups(Array(count).fill(0), accept)).map(({ id }) => id);
    await bench.store.sweepWork({ at: at + 1, max: count });
    const left = async () => {
      const rows = await inGroups(ids, (id) => bench.store.getInvocation({ id, projectId }));
      return rows.filter((row) => row !== undefined).length;
    };
    const closing = new AbortController();
    closing.abort();
    await cleanIn(bench, INVOCATIONS + 1, closing);
    assert.is(await left(), count);
    await cleanIn(bench, INVOCATIONS + 1);
    assert.is(await left(), 0);
  });

  test.run();
}

/** At most 50 at a time: more would wait too long for a connection on a busy machine. */
async function inGroups<T, R>(items: T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += 50) {
    results.push(...(await Promise.all(items.slice(at, at + 50).map(act))));
  }
  return results;
}
