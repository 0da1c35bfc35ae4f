import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { appendLines } from '../../support/core/reports.ts';
import { faultOf } from '../../support/fault.ts';
import { boot, HOLDER } from '../boot.ts';

const test = suite('core/functions/builds');

test('a build is PENDING, RUNNING, then COMPLETED with its functions', async () => {
  await using app = await boot();
  const { functions, runners } = app.clients;
  const archiveBlobId = await app.upload('archive');
  const wanted = { entrypoint: './src/index.ts', archiveBlobId };
  const { build: made } = await functions.createBuild(wanted, app.asProject);
  const read = async () =>
    (await functions.getBuild({ buildId: made?.id ?? '' }, app.asProject)).build;
  assert.is(made?.status, 'PENDING');
  assert.equal(made?.request, { entrypoint: 'src/index.ts', functionNames: [] });
  assert.is(Number(made?.expiresAt) - Number(made?.createdAt), 600_000);
  const { leaseId, item } = must((await app.lease('BUILD'))[0], 'build');
  assert.is(item?.$case === 'build' && item.value.entrypoint, 'src/index.ts');
  assert.is((await read())?.status, 'RUNNING');
  const bundleBlobId = await app.upload('bundle', leaseId);
  const found = { name: 'f', sessionConfigJson: '{"timeout":60}', paramsSchemaJson: '{}' };
  const value = { bundleBlobId, manifests: [found] };
  const outcome = { $case: 'success' as const, value };
  assert.equal(await runners.completeBuild({ leaseId, outcome }, app.asRunner), { accepted: true });
  assert.equal(await runners.completeBuild({ leaseId, outcome }, app.asRunner), { accepted: true });
  const done = await read();
  assert.is(done?.status, 'COMPLETED');
  assert.is(done?.builtFunctions.length, 1);
  const [built] = done?.builtFunctions ?? [];
  assert.is(built?.name, 'f');
  assert.is(built?.createdVersion?.functionBuildId, made?.id);
  assert.equal(built?.createdVersion?.sessionCreateParams, { timeout: 60 });
  assert.equal(built?.createdVersion?.userParamsSchema, {});
});

test('a build whose manifests are refused fails with their code, publishing nothing', async () => {
  await using app = await boot();
  const bad = [{ name: 'good' }, { name: 'f', config: '{"region":"us-west-2"}' }];
  const buildId = await app.build({ manifests: bad });
  const { build } = await app.clients.functions.getBuild({ buildId }, app.asProject);
  assert.is(build?.status, 'FAILED');
  assert.is(build?.cause?.code, 'INVALID_SESSION_CREATE_PARAMS');
  assert.equal(build?.builtFunctions, []);
  const { total } = await app.clients.functions.listFunctions({}, app.asProject);
  assert.is(total, 0);
});

test('a failure that the runner reports is stored', async () => {
  await using app = await boot();
  const cause = { code: 'BUILD_ERROR', message: 'cannot resolve "x"' };
  const buildId = await app.build({ $case: 'failure', value: cause });
  const { build } = await app.clients.functions.getBuild({ buildId }, app.asProject);
  assert.equal(build?.cause, cause);
});

test('an archive or an unknown blob cannot be published as a bundle', async () => {
  await using app = await boot();
  const archiveBlobId = await app.upload('archive');
  const wanted = { entrypoint: 'index.ts', archiveBlobId };
  await app.clients.functions.createBuild(wanted, app.asProject);
  const { leaseId } = must((await app.lease('BUILD'))[0], 'build');
  const manifests = [{ name: 'f', sessionConfigJson: '', paramsSchemaJson: '' }];
  for (const bundleBlobId of [archiveBlobId, newId()]) {
    const outcome = { $case: 'success', value: { bundleBlobId, manifests } } as const;
    const end = app.clients.runners.completeBuild({ leaseId, outcome }, app.asRunner);
    assert.is((await faultOf(end)).facts['field'], 'bundleBlobId');
  }
});

test('an invalid build request is refused at once', async () => {
  await using app = await boot();
  const archiveBlobId = await app.upload('archive');
  const { functions } = app.clients;
  const create = (more: object) =>
    faultOf(
      functions.createBuild({ entrypoint: 'index.ts', archiveBlobId, ...more }, app.asProject),
    );
  assert.is((await create({ entrypoint: '../index.ts' })).facts['field'], 'entrypoint');
  assert.is((await create({ archiveBlobId: newId() })).message, 'Archive not found.');
  assert.is((await create({ projectId: newId() })).reason, 'PROJECT_MISMATCH');
  assert.is((await functions.listBuilds({}, app.asProject)).total, 0);
});

test('builds, functions and versions are listed newest first', async () => {
  await using app = await boot();
  const { functions } = app.clients;
  const first = await app.publish({ name: 'a' });
  const second = await app.publish({ name: 'b' });
  assert.is(await app.publish({ name: 'a' }), first);
  const list = await functions.listFunctions({}, app.asProject);
  assert.equal(
    list.data.map(({ id }) => id),
    [second, first],
  );
  const builds = await functions.listBuilds({ limit: 2, status: 'COMPLETED' }, app.asProject);
  assert.equal([builds.data.length, builds.total], [2, 3]);
  const versions = await functions.listVersions({ functionId: first }, app.asProject);
  assert.is(versions.total, 2);
  const id = must(versions.results[0], 'newest').id;
  const { version } = await functions.getVersion({ id }, app.asProject);
  assert.equal(version, versions.results[0]);
  const { function: one } = await functions.getFunction({ id: first }, app.asProject);
  assert.is(one?.name, 'a');
  const unknown = functions.listVersions({ functionId: newId() }, app.asProject);
  assert.is((await faultOf(unknown)).message, 'Function not found.');
});

test("a build's log is readable", async () => {
  await using app = await boot();
  const wanted = { entrypoint: 'index.ts', archiveBlobId: await app.upload('archive') };
  const { build } = await app.clients.functions.createBuild(wanted, app.asProject);
  const { leaseId } = must((await app.lease('BUILD'))[0], 'build');
  const lines = [{ message: 'npm ci', timestamp: 1_700_000_000_000, level: 'info' }];
  await appendLines(app, { leaseId, first: 0, lines });
  const buildId = build?.id ?? '';
  const log = await app.clients.functions.listBuildLogs({ buildId }, app.asProject);
  assert.equal(log, { logs: lines, total: 1 });
});

test('a new instance of the runner fails the build of the old one', async () => {
  await using app = await boot();
  const wanted = { entrypoint: 'index.ts', archiveBlobId: await app.upload('archive') };
  const { build } = await app.clients.functions.createBuild(wanted, app.asProject);
  await app.lease('BUILD');
  await app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  const buildId = build?.id ?? '';
  const found = await app.clients.functions.getBuild({ buildId }, app.asProject);
  assert.equal(found.build?.cause, { code: 'INTERNAL_ERROR', message: 'the runner was lost' });
});

test.run();
