/** Deletion of a function: refused while it has work, and what it removes with the function. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { functionHandlers } from '../../../core/functions/functions.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { appendLines } from '../../support/core/reports.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { envOn, openStoreOn } from '../../support/engine.ts';
import { faultOf, reasonsOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, configOn, HOLDER, KEY } from '../boot.ts';
import { type Bench, ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/functions/deletion');
const CHILD = fileURLToPath(new URL('./deletion-crash-child.ts', import.meta.url));
const HOUR_MS = 3_600_000;
const silent = openLog({ role: 'test', level: 'silent' });
const never = new AbortController().signal;

function remove(app: Booted, id: string) {
  return app.clients.functions.deleteFunction({ id }, app.asProject);
}

/** An invocation that a runner has started. */
async function running(app: Booted, functionId: string) {
  const { id } = await app.invoke(functionId);
  return { id, ...(await started(app)) };
}

/** The next waiting invocation, started. */
async function started(app: Booted) {
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const line = { message: 'hello', timestamp: 0, level: 'log' };
  await appendLines(app, { leaseId, first: 0, lines: [line] });
  const end = () => {
    const outcome = { $case: 'resultsJson', value: '1' } as const;
    const ended = { leaseId, outcome, sessionStartMs: 0, steps: [] };
    return app.clients.runners.completeInvocation(ended, app.asRunner);
  };
  return { leaseId, end };
}

async function buildIds(app: Booted): Promise<string[]> {
  const { data } = await app.clients.functions.listBuilds({}, app.asProject);
  return data.map(({ id }) => id);
}

/** Invokes with a key, the same each time. */
async function invokeOnce({ invocations }: Booted['clients'], functionId: string): Promise<string> {
  const request = { functionId, params: {}, sessionCreateParams: undefined };
  const asProject = { metadata: { 'x-svc-api-key': KEY } };
  const answer = await invocations.invokeFunction(
    { ...request, idempotencyKey: 'once' },
    asProject,
  );
  return must(answer.invocation, 'invocation').id;
}

/** A build that a runner has started, which publishes one function. */
async function openBuild(app: Booted, name: string, archive?: string) {
  const archiveBlobId = archive ?? (await app.upload('archive'));
  const wanted = { entrypoint: './index.ts', archiveBlobId };
  const { build } = await app.clients.functions.createBuild(wanted, app.asProject);
  const { leaseId } = must((await app.lease('BUILD'))[0], 'a build to lease');
  const bundleBlobId = await app.upload('bundle', leaseId);
  const manifests = [{ name, sessionConfigJson: '', paramsSchemaJson: '' }];
  const outcome = { $case: 'success', value: { bundleBlobId, manifests } } as const;
  const complete = () => app.clients.runners.completeBuild({ leaseId, outcome }, app.asRunner);
  return { buildId: must(build, 'build').id, complete };
}

/** Core on the same directory, after its end. */
function restart(app: Booted) {
  const config = configOn(app.dir);
  return startCore(config, silent, { now: app.clock.now });
}

/** DeleteFunction over the bench's store, without the rest of core. */
async function deleting(
  { store, dir }: Bench,
  projectId: string,
  { signal = never, closing = never }: { signal?: AbortSignal; closing?: AbortSignal } = {},
) {
  const files = await openBlobFiles(join(dir, 'blobs'));
  const handlers = functionHandlers({ store, files, log: silent, now: () => T0, closing });
  const call = { signal, deadline: Number.POSITIVE_INFINITY, metadata: {} };
  return (id: string) => handlers.deleteFunction({ id }, { projectId, call } as never);
}

const filesOf = (app: Booted) => readdirSync(join(app.dir, 'blobs'));

test('it is refused with the number of pending and running invocations', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const run = await running(app, id);
  await app.invoke(id);
  const two = await faultOf(remove(app, id));
  assert.is(two.reason, 'FUNCTION_IN_USE');
  assert.match(two.message, /cannot be deleted: 2 invocations are pending or running/);
  assert.equal([two.row.http, two.facts['open']], [409, 2]);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'the second');
  assert.is((await faultOf(remove(app, id))).facts['open'], 2, 'no work was ended');
  await run.end();
  assert.match((await faultOf(remove(app, id))).message, /1 invocation is pending or running/);
  const outcome = { $case: 'resultsJson', value: '1' } as const;
  const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  assert.equal(await remove(app, id.toUpperCase()), {});
});

test('it removes versions, ended invocations, builds and files, and frees the name', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  await app.publish({ name: 'f' });
  const run = await running(app, id);
  await run.end();
  const { results } = await app.clients.functions.listVersions({ functionId: id }, app.asProject);
  assert.is(results.length, 2);
  assert.is(filesOf(app).length, 4, 'an archive and a bundle of each build');
  await remove(app, id);
  assert.equal(filesOf(app), []);
  assert.equal(await buildIds(app), []);
  const { functions, invocations } = app.clients;
  const gone: Promise<unknown>[] = [
    functions.getFunction({ id }, app.asProject),
    functions.listVersions({ functionId: id }, app.asProject),
    functions.getVersion({ id: must(results[0], 'version').id }, app.asProject),
    invocations.getInvocation({ id: run.id }, app.asProject),
    invocations.listInvocationLogs({ id: run.id }, app.asProject),
    remove(app, id),
    app.invoke(id),
  ];
  for (const reason of await reasonsOf(gone)) assert.is(reason, 'RESOURCE_NOT_FOUND');
  assert.equal((await functions.listFunctions({}, app.asProject)).data, []);
  const again = await app.publish({ name: 'f' });
  assert.not.equal(again, id);
  assert.ok((await app.invoke(again)).id);
});

test('a build with another function stays, with its files', async () => {
  await using app = await boot();
  const buildId = await app.build({ manifests: [{ name: 'f' }, { name: 'g' }] });
  const read = async () => {
    const { build } = await app.clients.functions.getBuild({ buildId }, app.asProject);
    return must(build, 'build').builtFunctions;
  };
  const [f, g] = await read();
  await remove(app, must(f, 'f').id);
  assert.equal(
    (await read()).map(({ name }) => name),
    ['g'],
  );
  assert.is(filesOf(app).length, 2);
  assert.ok((await app.invoke(must(g, 'g').id)).id);
  assert.is((await faultOf(app.invoke(must(f, 'f').id))).reason, 'RESOURCE_NOT_FOUND');
});

test('a function of another project, or of none, is a 404; a malformed id a 400', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const { operators, functions } = app.clients;
  await operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const { key } = await operators.createApiKey({ project: 'other', name: '' }, app.asOperator);
  const asOther = { metadata: { 'x-svc-api-key': key } };
  const fault = await faultOf(functions.deleteFunction({ id }, asOther));
  assert.equal([fault.reason, fault.message], ['RESOURCE_NOT_FOUND', 'Function not found.']);
  assert.is((await faultOf(remove(app, newId()))).reason, 'RESOURCE_NOT_FOUND');
  assert.is((await faultOf(remove(app, 'x'))).reason, 'INVALID_FIELD');
  assert.ok((await functions.getFunction({ id }, app.asProject)).function);
});

test('a file that cannot be removed fails no deletion; the sweep removes it', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const stuck =
    filesOf(app)
      .sort()
      .map((name) => join(app.dir, 'blobs', name))[0] ?? '';
  rmSync(stuck);
  mkdirSync(stuck); // removing a file of this name fails
  assert.equal(await remove(app, id), {});
  await until(() => filesOf(app).length === 1);
  assert.match(app.logged.join(), /removing a deleted function failed/);
  assert.is((await faultOf(remove(app, id))).reason, 'RESOURCE_NOT_FOUND');
  rmSync(stuck, { recursive: true });
  writeFileSync(stuck, '');
  utimesSync(stuck, new Date(), new Date(Date.now() - 2 * HOUR_MS));
  await app.core.close();
  await using _ = await restart(app);
  assert.equal(filesOf(app), []);
});

test('a key whose invocation was deleted is free', async () => {
  await using app = await boot();
  const call = (functionId: string) => invokeOnce(app.clients, functionId);
  const id = await app.publish({ name: 'f' });
  const first = await call(id);
  assert.is(await call(id), first);
  await (await started(app)).end();
  await remove(app, id);
  assert.is((await faultOf(call(id))).reason, 'RESOURCE_NOT_FOUND');
  const again = await call(await app.publish({ name: 'f' }));
  assert.not.equal(again, first);
});

for (const order of ['the deletion', 'the build']) {
  test(`a build that ends during a deletion makes a whole function: ${order} first`, async () => {
    await using app = await boot();
    const id = await app.publish({ name: 'f' });
    const { buildId, complete } = await openBuild(app, 'f');
    if (order === 'the build') await Promise.all([complete(), remove(app, id)]);
    else await Promise.all([remove(app, id), complete()]);
    const { functions } = app.clients;
    assert.is((await faultOf(functions.getFunction({ id }, app.asProject))).row.http, 404);
    const { data } = await functions.listFunctions({}, app.asProject);
    assert.equal(
      data.map(({ name }) => name),
      (await buildIds(app)).includes(buildId) ? ['f'] : [],
    );
    for (const one of data) {
      assert.not.equal(one.id, id);
      assert.ok((await app.invoke(one.id)).id);
    }
    assert.equal(app.logged, []);
  });
}

test('a build of the same archive that runs during a deletion makes a new function', async () => {
  await using app = await boot();
  const archiveBlobId = await app.upload('archive');
  const first = await openBuild(app, 'f', archiveBlobId);
  await first.complete();
  const running = await openBuild(app, 'f', archiveBlobId);
  const wanted = { entrypoint: './index.ts', archiveBlobId };
  const { build: waiting } = await app.clients.functions.createBuild(wanted, app.asProject);
  const { data } = await app.clients.functions.listFunctions({}, app.asProject);
  const id = must(data[0], 'f').id;
  await remove(app, id);
  assert.equal(await buildIds(app), [waiting?.id, running.buildId]);
  await running.complete();
  const after = await app.clients.functions.listFunctions({}, app.asProject);
  assert.equal(
    after.data.map(({ name }) => name),
    ['f'],
  );
  const made = must(after.data[0], 'the new function');
  assert.not.equal(made.id, id);
  const { results } = await app.clients.functions.listVersions(
    { functionId: made.id },
    app.asProject,
  );
  assert.equal(
    results.map(({ functionBuildId }) => functionBuildId),
    [running.buildId],
  );
  assert.ok((await app.lease('BUILD'))[0], 'the pending build still has its archive');
});

test('reports of a runner for a deleted invocation change nothing', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const { invocations, runners } = app.clients;
  const offered = await app.invoke(id);
  const offer = { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 0 } as const;
  const { leaseId } = must((await runners.leaseWork(offer, app.asRunner)).work[0], 'an offer');
  await invocations.cancelInvocation({ id: offered.id }, app.asProject);
  await app.invoke(id);
  const ended = await started(app);
  await ended.end();
  await remove(app, id);
  for (const lease of [leaseId, ended.leaseId]) {
    const { leaseIds } = await runners.reportRunner({ ...HOLDER, leaseIds: [lease] }, app.asRunner);
    assert.equal(leaseIds, []);
    const lines = [{ message: 'late', timestamp: 0, level: 'log' }];
    const append = appendLines(app, { leaseId: lease, first: 0, lines });
    assert.is((await faultOf(append)).reason, 'LEASE_LOST');
    const outcome = { $case: 'resultsJson', value: '1' } as const;
    const end = { leaseId: lease, outcome, sessionStartMs: 0, steps: [] };
    assert.equal(await runners.completeInvocation(end, app.asRunner), { accepted: false });
  }
  const read = invocations.getInvocation({ id: offered.id }, app.asProject);
  assert.is((await faultOf(read)).reason, 'RESOURCE_NOT_FOUND');
  assert.equal(app.logged, []);
});

test('a call that waits for an invocation ends with 404 when its function is deleted', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const { invocations } = app.clients;
  const made = await app.invoke(id);
  const waiting = faultOf(invocations.getInvocation({ id: made.id, wait: 20 }, app.asProject));
  const cancelled = invocations.cancelInvocation({ id: made.id }, app.asProject);
  await Promise.all([cancelled, remove(app, id)]);
  assert.is((await waiting).reason, 'RESOURCE_NOT_FOUND');
  assert.equal(app.logged, []);
});

test('a deletion frees the quotas of uploads and of results', async () => {
  await using app = await boot({ TABERN_UPLOAD_MIB: '1' });
  const id = await app.publish({ name: 'f' });
  await (await running(app, id)).end();
  const usage = async () => {
    const { projects } = app.clients;
    const { projects: all } = await projects.listProjects({}, app.asProject);
    const { id: own } = must(all[0], 'a project');
    const { storage } = await projects.getProjectUsage({ id: own }, app.asProject);
    return [storage?.uploadBytes?.used, storage?.logBytes?.used];
  };
  const whole = 'x'.repeat(1 << 20);
  assert.equal(await usage(), ['archive'.length + 'bundle'.length, 1]);
  assert.is((await faultOf(app.upload(whole))).reason, 'QUOTA_EXCEEDED');
  await remove(app, id);
  assert.equal(await usage(), [0, 0]);
  assert.ok(await app.upload(whole));
});

test('a function with the name that deleted ones had in the database changes nothing', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const other = await app.publish({ name: `deleted: ${id}` });
  await remove(app, id);
  assert.ok((await app.invoke(other)).id);
});

test('killed between the mark and the removal: nothing is found after the start', async () => {
  await using app = await boot();
  const id = await app.publish({ name: 'f' });
  const other = await app.publish({ name: 'g' });
  const invocationId = await invokeOnce(app.clients, id);
  await (await started(app)).end();
  const { clients, asProject } = app;
  const { results } = await clients.functions.listVersions({ functionId: id }, asProject);
  const versionId = must(results[0], 'version').id;
  const [kept, buildId = ''] = await buildIds(app);
  await app.core.close();
  const env = envOn(app.dir);
  const child = spawn(process.execPath, [CHILD, app.dir, id], { stdio: 'inherit', env });
  assert.is((await once(child, 'close'))[1], 'SIGKILL');
  assert.is(filesOf(app).length, 4);
  {
    await using core = await restart(app);
    const { functions, invocations } = core.clients;
    const gone = [
      functions.getFunction({ id }, asProject),
      functions.getVersion({ id: versionId }, asProject),
      functions.getBuild({ buildId }, asProject),
      functions.listBuildLogs({ buildId }, asProject),
      functions.deleteFunction({ id }, asProject),
      invokeOnce(core.clients, id),
      invocations.getInvocation({ id: invocationId }, asProject),
      invocations.getInvocation({ id: invocationId, wait: 1 }, asProject),
      invocations.cancelInvocation({ id: invocationId }, asProject),
      invocations.listInvocationLogs({ id: invocationId }, asProject),
      invocations.listInvocations({ versionId }, asProject),
    ];
    for (const reason of await reasonsOf(gone)) assert.is(reason, 'RESOURCE_NOT_FOUND');
    const builds = await functions.listBuilds({}, asProject);
    assert.equal([builds.total, builds.data.map((build) => build.id)], [1, [kept]]);
    assert.not.equal(await invokeOnce(core.clients, other), invocationId, 'the key is free');
  }
  const store = await openStoreOn(app.dir);
  const files = await openBlobFiles(join(app.dir, 'blobs'));
  await purgeAt(app.clock.now(), ['deleted functions'], { store, remove: files.remove });
  await store.close();
  assert.is(filesOf(app).length, 2);
});

for (const engine of ENGINES) {
  test(`${engine.name}: a deletion hides at once, and removes in several operations`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const version = await bench.publish(projectId);
    const { functionId } = version;
    const { id } = await bench.accept(projectId, version, { at: T0 });
    const { leaseId } = must((await bench.lease('invocation', 1, T0))[0], 'an invocation');
    const lines = Array.from({ length: 5 }, () => ({ message: 'a', at: 0, level: 'log' }));
    const limit = { maxBytes: 1_000, linesMax: 10, marker: '' };
    await store.appendLogs({ leaseId, first: 0, lines, ...limit });
    const outcome = { kind: 'success', results: null } as const;
    await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: T0 });
    const wanted = { id: functionId, projectId, at: T0 };
    assert.equal(await store.deleteFunction(wanted), { open: 0 });
    assert.is(await store.deleteFunction(wanted), undefined);
    assert.is(await store.getFunction(wanted), undefined);
    assert.is(await store.newestVersion({ functionId, projectId }), undefined);
    const late = await faultOf(bench.accept(projectId, version, { at: T0 }));
    assert.is(late.reason, 'RESOURCE_NOT_FOUND', 'its version was read before the deletion');
    assert.is(await store.getInvocation({ id, projectId }), undefined);
    const page = { projectId, status: undefined, offset: 0, limit: 10 };
    const { versionId } = version;
    assert.equal(await store.listInvocations({ ...page, versionId }), { rows: [], total: 0 });
    assert.equal(await store.listBuilds(page), { rows: [], total: 0 });
    assert.equal(await store.purgeFunctions({ max: 3 }), { rows: 3, dropped: [] });
    assert.is((await store.listLogs(id)).length, 2);
    assert.equal(await store.purgeFunctions({ max: 3 }), { rows: 3, dropped: [] });
    assert.equal(await store.listLogs(id), []);
    const last = await store.purgeFunctions({ max: 3 });
    assert.equal([last.rows, last.dropped.length], [2, 2]);
    assert.equal(await store.knownBlobs(last.dropped), []);
    assert.equal(await store.purgeFunctions({ max: 3 }), { rows: 0, dropped: [] });
  });

  test(`${engine.name}: retention completes a deletion that a crash interrupted`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { functionId, versionId } = await bench.publish(projectId);
    const kept = await bench.publish(projectId, 'other');
    await store.deleteFunction({ id: functionId, projectId, at: T0 });
    const removed: string[] = [];
    const remove = async (...ids: string[]) => void removed.push(...ids);
    await purgeAt(T0, ['deleted functions'], { store, remove });
    assert.is(removed.length, 2, 'its archive and its bundle');
    assert.equal(await store.purgeFunctions({ max: 10 }), { rows: 0, dropped: [] });
    assert.is(await store.getVersion({ id: versionId, projectId }), undefined);
    assert.ok(await store.getVersion({ id: kept.versionId, projectId }));
  });

  test(`${engine.name}: a long log of a build is removed in several operations`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { functionId } = await bench.publish(projectId, 'f', 5);
    const page = { projectId, status: undefined, offset: 0, limit: 10 };
    const buildId = must((await store.listBuilds(page)).rows[0], 'a build').build.id;
    await store.deleteFunction({ id: functionId, projectId, at: T0 });
    assert.equal(await store.purgeFunctions({ max: 3 }), { rows: 3, dropped: [] });
    assert.is((await store.listLogs(buildId)).length, 2);
    assert.is(await store.getBuild({ id: buildId, projectId }), undefined, 'and stays hidden');
    const last = await store.purgeFunctions({ max: 10 });
    assert.equal([last.rows, last.dropped.length], [4, 2]);
    assert.equal(await store.listLogs(buildId), []);
  });

  test(`${engine.name}: a deletion removes its own rows, at most 10,000`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const other = await bench.publish(projectId, 'other');
    await store.deleteFunction({ id: other.functionId, projectId, at: T0 });
    const small = await bench.publish(projectId, 'small');
    const large = await bench.publish(projectId, 'large', 10_500);
    const deletion = await deleting(bench, projectId);
    await deletion(small.functionId);
    await deletion(large.functionId);
    const left = (functionId: string) => store.purgeFunctions({ functionId, max: 1_000 });
    assert.is((await left(small.functionId)).rows, 0);
    assert.is((await left(large.functionId)).rows, 502, 'lines, the build and the function');
    assert.is((await left(other.functionId)).rows, 2, 'not of this deletion');
  });

  test(`${engine.name}: a deletion is whole without its removal, which an abort ends`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const gone = await bench.publish(projectId, 'f');
    const kept = await bench.publish(projectId, 'g');
    const closing = await deleting(bench, projectId, { closing: AbortSignal.abort() });
    assert.equal(await closing(gone.functionId), {});
    assert.is(await store.getFunction({ id: gone.functionId, projectId }), undefined);
    assert.is((await store.purgeFunctions({ max: 10 })).rows, 2);
    const left = await deleting(bench, projectId, { signal: AbortSignal.abort() });
    await left(kept.functionId);
    assert.is((await store.purgeFunctions({ max: 10 })).rows, 2);
    const live = await bench.publish(projectId, 'h');
    assert.is((await store.purgeFunctions({ functionId: live.functionId, max: 10 })).rows, 0);
  });

  test(`${engine.name}: events of deleted invocations are still delivered`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const version = await bench.publish(projectId);
    const events = await bench.listen(projectId);
    await bench.accept(projectId, version);
    const { leaseId } = must((await bench.lease('invocation'))[0], 'an invocation');
    const outcome = { kind: 'success', results: null } as const;
    await store.completeInvocation({ leaseId, outcome, sessionStartedAt: null, at: T0 });
    const deletion = await deleting(bench, projectId);
    await deletion(version.functionId);
    assert.is((await store.purgeFunctions({ max: 10 })).rows, 0);
    assert.equal(
      await events(),
      ['completed', 'pending', 'running'].map((step) => `functions.invocations.${step}`),
    );
  });
}

test.run();
