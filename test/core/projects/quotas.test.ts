/** Quotas: a project's stored amounts, counted with its rows, independent of other projects. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BlobKind } from '../../../core/store/types/files.ts';
import { must } from '../../../proto/common/must.ts';
import { TakeScreenshotRequest } from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { rowsOf } from '../../support/core/database.ts';
import { appendChunk } from '../../support/core/reports.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, blobParts, boot } from '../boot.ts';

const test = suite('core/projects/quotas');

const KIB = 1024;
const none = { projectId: undefined, name: undefined };
const SESSION = {
  userMetadata: undefined,
  browserSettings: undefined,
  proxies: undefined,
  proxySettings: undefined,
  labels: [],
};

/** A core with small quotas, and a second project on it. */
async function open(env: Record<string, string>) {
  const app = await boot(env);
  const { operators } = app.clients;
  await operators.createProject({ name: 'second', limits: {} }, app.asOperator);
  const { key } = await operators.createApiKey({ project: 'second', name: '' }, app.asOperator);
  const asSecond: CallOptions = { metadata: { 'x-svc-api-key': must(key, 'a key') } };
  return { ...app, asSecond, files: () => readdirSync(join(app.dir, 'blobs')) };
}

function write(app: Booted, as: CallOptions, kib: number, kind: BlobKind = 'BUILD_ARCHIVE') {
  return app.clients.blobs.writeBlob(blobParts({ kind }, Buffer.alloc(kib * KIB)), as);
}

/** The counted amounts beside the existing rows. */
async function stored(app: Booted) {
  const of = async (sql: string) => {
    const rows = await rowsOf(app.dir, `${sql} ORDER BY 1, 2`);
    return rows.map((row) => Object.values(row).map(String));
  };
  const counted = await of(`
    SELECT project_id, kind, count, bytes FROM stored WHERE count > 0 OR bytes > 0`);
  const there = await of(`
    SELECT project_id, kind, COUNT(*), SUM(size) FROM blobs GROUP BY project_id, kind
    UNION ALL SELECT project_id, 'ACTIVE_CONTEXT', COUNT(*), 0 FROM contexts
      WHERE status = 'active' GROUP BY project_id
    UNION ALL SELECT sessions.project_id, 'SESSION_LOG', COUNT(*), SUM(length(entries))
      FROM session_logs JOIN sessions ON sessions.id = session_id GROUP BY sessions.project_id
    UNION ALL SELECT project_id, 'RESULT', COUNT(*), SUM(octet_length(results))
      FROM invocations WHERE results IS NOT NULL GROUP BY project_id`);
  return { counted, there };
}

test('a project has a maximum of contexts; deleting one frees a place', async () => {
  await using app = await open({ TABERN_CONTEXTS_MAX: '2' });
  const { contexts } = app.clients;
  const create = (as: CallOptions) => contexts.createContext(none, as);
  const { id } = await create(app.asProject);
  await create(app.asProject);
  const fault = await faultOf(create(app.asProject));
  assert.is(fault.reason, 'QUOTA_EXCEEDED');
  assert.equal([fault.facts['quota'], Number(fault.facts['limit'])], ['contexts', 2]);
  assert.match(fault.message, /quota `contexts` \(2\)/);
  await create(app.asSecond);
  await contexts.deleteContext({ id }, app.asProject);
  await create(app.asProject);
  const { counted, there } = await stored(app);
  assert.equal(counted, there);
});

test('uploads beyond the quota are refused early, and leave no file', async () => {
  await using app = await open({ TABERN_UPLOAD_MIB: '1' });
  await write(app, app.asProject, 700);
  const before = app.files();
  for (const kind of ['BUILD_ARCHIVE', 'EXTENSION'] as const) {
    const fault = await faultOf(write(app, app.asProject, 700, kind));
    assert.equal([fault.reason, fault.facts['quota']], ['QUOTA_EXCEEDED', 'uploadMib']);
  }
  assert.equal(app.files(), before);
  await write(app, app.asSecond, 700);
  const { counted, there } = await stored(app);
  assert.equal(counted, there);
});

test('concurrent uploads share one quota', async () => {
  await using app = await open({ TABERN_UPLOAD_MIB: '1' });
  const all = await Promise.allSettled([1, 2, 3, 4].map(() => write(app, app.asProject, 400)));
  const done = all.filter(({ status }) => status === 'fulfilled');
  assert.ok(done.length <= 2, `${done.length} of 400 KiB in 1 MiB`);
  assert.is(app.files().length, done.length);
});

test('an operator sets the quotas of a project', async () => {
  await using app = await open({ TABERN_UPLOAD_MIB: '1' });
  const { operators } = app.clients;
  const limits = { uploadMib: 3 };
  const { project } = await operators.setProjectLimits(
    { project: 'second', limits },
    app.asOperator,
  );
  assert.is(project?.limits?.uploadMib, 3);
  await write(app, app.asSecond, 2 * KIB);
  assert.is((await faultOf(write(app, app.asProject, 2 * KIB))).reason, 'QUOTA_EXCEEDED');
  const fault = await faultOf(
    operators.setProjectLimits({ project: 'second', limits: { uploadMib: 0 } }, app.asOperator),
  );
  assert.match(fault.message, /`uploadMib` must be 1 to /);
});

test('usage has the stored amounts and the quotas', async () => {
  await using app = await open({ TABERN_CONTEXTS_MAX: '7', TABERN_DOWNLOAD_MIB: '5' });
  const { clients, asProject } = app;
  await clients.contexts.createContext(none, asProject);
  await write(app, asProject, 3);
  const [project] = (await clients.projects.listProjects({}, asProject)).projects;
  const id = must(project, 'a project').id;
  const { storage } = await clients.projects.getProjectUsage({ id }, asProject);
  assert.equal(storage?.contexts, { used: 1, limit: 7 });
  assert.equal(storage?.uploadBytes, { used: 3 * KIB, limit: 10_240 * KIB * KIB });
  assert.equal(storage?.downloadBytes, { used: 0, limit: 5 * KIB * KIB });
  const { projects } = await clients.operators.listAllProjects({}, app.asOperator);
  assert.equal(projects[0]?.storage, storage);
});

test('downloads beyond the quota are refused to the runner', async () => {
  await using app = await open({ TABERN_DOWNLOAD_MIB: '1' });
  const creating = app.clients.sessions.createSession(SESSION, app.asProject);
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session');
  await app.clients.runners.startSession({ leaseId, startMs: 0 }, app.asRunner);
  await creating;
  const bring = (kib: number) =>
    app.clients.blobs.writeBlob(
      blobParts({ kind: 'DOWNLOAD', leaseId }, Buffer.alloc(kib * KIB)),
      app.asRunner,
    );
  const { blobId } = await bring(800);
  const added = { leaseId, blobId, filename: 'a' };
  await app.clients.runners.addDownload(added, app.asRunner);
  const fault = await faultOf(bring(800));
  assert.equal([fault.reason, fault.facts['quota']], ['QUOTA_EXCEEDED', 'downloadMib']);
  const listed = { sessionId: (await creating).session?.id ?? '' };
  await app.clients.downloads.deleteSessionDownloads(listed, app.asProject);
  assert.is(existsSync(join(app.dir, 'blobs', blobId)), false);
  await bring(800);
  const { counted, there } = await stored(app);
  assert.equal(counted, there);
});

test('results beyond the quota refuse invocations and one-shots', async () => {
  await using app = await open({ TABERN_LOG_MIB: '1' });
  const functionId = await app.publish({ name: 'f' });
  await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const resultsJson = JSON.stringify('x'.repeat(1024 * KIB));
  const outcome = { $case: 'resultsJson', value: resultsJson } as const;
  const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  const page = TakeScreenshotRequest.fromPartial({ url: 'https://example.com/' });
  const refused = [
    () => app.invoke(functionId),
    () => app.clients.oneShots.takeScreenshot(page, app.asProject),
  ];
  for (const call of refused) assert.is((await faultOf(call())).reason, 'QUOTA_EXCEEDED');
});

test('a log ends at the quota of logs and results, without refusing invocations', async () => {
  await using app = await open({ TABERN_LOG_MIB: '1' });
  const { runners } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const append = (number: number) =>
    appendChunk(app, {
      leaseId,
      number,
      entries: Buffer.alloc(700 * KIB),
      count: 1,
      size: 700 * KIB,
    });
  assert.is((await append(0)).full, false);
  assert.is((await append(1)).full, true);
  const resultsJson = JSON.stringify('é'.repeat(200 * KIB));
  const outcome = { $case: 'resultsJson', value: resultsJson } as const;
  await runners.completeInvocation(
    { leaseId, outcome, sessionStartMs: 0, steps: [] },
    app.asRunner,
  );
  await app.invoke(functionId); // logs end by themselves, and refuse no work
  const { counted, there } = await stored(app);
  assert.equal(counted, there);
});

test('results beyond the quota refuse a new invocation, but not a repeated key', async () => {
  await using app = await open({ TABERN_LOG_MIB: '1' });
  const functionId = await app.publish({ name: 'f' });
  const { invocations, runners } = app.clients;
  const request = { functionId, params: {}, sessionCreateParams: undefined };
  const invoke = async () => {
    const wanted = { ...request, idempotencyKey: 'once' };
    return (await invocations.invokeFunction(wanted, app.asProject)).invocation;
  };
  const id = must((await invoke())?.id, 'an invocation');
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const outcome = { $case: 'resultsJson', value: JSON.stringify('x'.repeat(KIB * KIB)) } as const;
  await runners.completeInvocation(
    { leaseId, outcome, sessionStartMs: 0, steps: [] },
    app.asRunner,
  );
  const fault = await faultOf(app.invoke(functionId));
  assert.equal([fault.reason, fault.facts['quota']], ['QUOTA_EXCEEDED', 'logMib']);
  assert.match(fault.message, /removed by their age/);
  assert.is((await invoke())?.id, id);
});

test.run();
