/** Content of contexts: loaded, saved, replaced and dropped. Issue 4, points 2 and 5. */

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { rowsOf } from '../../support/core/database.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { addProject } from '../../support/service/other-project.ts';
import { boot, configOn, HOLDER } from '../boot.ts';
import { openContext, textOf } from './runs.ts';

const silent = openLog({ role: 'core', level: 'silent' });
const test = suite('core/contexts/content');

test('a session starts from no content, then from the previous save', async () => {
  await using app = await openContext();
  const first = await app.start();
  const { contextId, persist, publicKey, blobId, keys } = must(first.context, 'context');
  assert.equal([contextId, persist, blobId], [app.created.id, true, undefined]);
  assert.is(publicKey, app.created.publicKey);
  assert.is(keys.length, 0);
  const { session } = await app.clients.sessions.getSession({ id: first.sessionId }, app.asProject);
  assert.is(session?.contextId, app.created.id);
  const { saved, replaced } = await app.save(first.leaseId, 'one');
  assert.equal([saved, replaced], [true, false]);
  await app.end(first.leaseId);

  const second = await app.start({ id: app.created.id.toUpperCase() });
  assert.is(second.context?.persist, false);
  assert.is(await textOf(app, second), 'one');
});

test("an invocation's context overrides that of sessionConfig", async () => {
  await using app = await openContext(
    {},
    '{"browserSettings":{"context":{"id":"$ID","persist":true}}}',
  );
  await app.accept(undefined);
  assert.is((await app.take()).context?.persist, true);
  const other = await app.start({ id: app.created.id, persist: false });
  assert.is(other.context?.persist, false);
});

test('a missing context is a 404 at the invocation', async () => {
  await using app = await openContext();
  const { id } = app.created;
  await app.clients.contexts.deleteContext({ id }, app.asProject);
  for (const missing of [id, 'nonsense', crypto.randomUUID()]) {
    const fault = await faultOf(app.accept({ id: missing }));
    assert.equal([fault.row.http, fault.message], [404, 'Context not found.']);
  }
});

test('a malformed context fails the build that configures it', async () => {
  await using app = await boot();
  for (const context of ['{}', '{"id":5}', '{"id":"x","persist":1}', '"x"']) {
    const config = `{"browserSettings":{"context":${context}}}`;
    const buildId = await app.build({ manifests: [{ name: 'f', config }] });
    const { build } = await app.clients.functions.getBuild({ buildId }, app.asProject);
    assert.is(build?.cause?.code, 'INVALID_SESSION_CREATE_PARAMS', context);
  }
});

test('sessions share a context; the last save wins and receives `replaced`', async () => {
  await using app = await openContext();
  const [one, two] = [await app.start(), await app.start()];
  const first = await app.save(one.leaseId, 'one');
  const second = await app.save(two.leaseId, 'two');
  assert.is(first.replaced, false);
  assert.is(second.replaced, true);
  assert.is(await textOf(app, await app.start()), 'two');
  assert.not.ok(app.files().includes(first.blobId), 'the replaced file is gone');
});

test('a repeated save has the same response and changes nothing', async () => {
  await using app = await openContext();
  const [one, two] = [await app.start(), await app.start()];
  await app.save(one.leaseId, 'one');
  const { blobId, ...said } = await app.save(two.leaseId, 'two');
  const repeat = { leaseId: two.leaseId, blobId };
  const answer = await app.clients.runners.saveContext(repeat, app.asRunner);
  assert.equal(answer, said);
  assert.is(await textOf(app, await app.start()), 'two');
});

test('replaced content does not count against the quota of a save', async () => {
  await using app = await openContext({ TABERN_CONTEXT_MIB: '1' });
  const text = (kib: number) => randomBytes(kib * 512).toString('base64');
  const run = await app.start();
  for (let n = 0; n < 3; n += 1) assert.ok((await app.save(run.leaseId, text(1_200))).saved);
  assert.ok((await app.save((await app.start()).leaseId, text(1_200))).saved, 'of another session');
  assert.is((await faultOf(app.save(run.leaseId, text(2_400)))).reason, 'QUOTA_EXCEEDED');
  const { id } = await app.clients.contexts.createContext(
    { projectId: undefined, name: undefined },
    app.asProject,
  );
  const other = await app.start({ id, persist: true });
  assert.is((await faultOf(app.save(other.leaseId, text(1_200)))).reason, 'QUOTA_EXCEEDED');
});

test('the content that a session loaded is kept until the session ends', async () => {
  await using app = await openContext();
  const first = await app.start();
  await app.save(first.leaseId, 'one');
  await app.end(first.leaseId);
  const reader = await app.start();
  const writer = await app.start();
  await app.save(writer.leaseId, 'two');
  assert.is(await textOf(app, reader), 'one');
  await app.end(reader.leaseId);
  assert.is(await textOf(app, await app.start()), 'two');
});

test('content of an offered session is kept, and swept after the session', async () => {
  await using app = await openContext();
  const first = await app.start();
  const one = await app.save(first.leaseId, 'one');
  await app.end(first.leaseId);
  await app.accept({ id: app.created.id });
  const wanted = { ...HOLDER, kind: 'INVOCATION' as const, max: 1, waitMs: 5_000 };
  const { work } = await app.clients.runners.leaseWork(wanted, app.asRunner);
  assert.is(work.length, 1);
  const writer = await app.start();
  const two = await app.save(writer.leaseId, 'two');
  await app.end(writer.leaseId);
  app.clock.advance(2 * 3_600_000);
  await app.core.close();
  /** A start sweeps files, and then ends work that is past its limit. */
  const filesOfStart = async (): Promise<string[]> => {
    const config = configOn(app.dir, { TABERN_SWEEP_MS: '50' });
    await using _ = await startCore(config, silent, { now: app.clock.now });
    const files = app.files();
    app.clock.advance(2 * 3_600_000); // past every lease and limit
    await until(async () => (await rowsOf(app.dir, 'SELECT id FROM jobs')).length === 0);
    return files;
  };
  const kept = await filesOfStart();
  assert.ok(kept.includes(one.blobId));
  const rest = kept.filter((name) => name !== one.blobId);
  assert.equal(await filesOfStart(), rest);
  assert.ok(rest.includes(two.blobId));
});

test('the save of a deleted context is dropped, and its session is COMPLETED', async () => {
  await using app = await openContext();
  const one = await app.start();
  await app.clients.contexts.deleteContext({ id: app.created.id }, app.asProject);
  const before = app.files();
  const { saved, replaced } = await app.save(one.leaseId, 'one');
  assert.equal([saved, replaced], [false, false]);
  assert.equal(app.files(), before);
  assert.is((await app.end(one.leaseId)).accepted, true);
  const { session } = await app.clients.sessions.getSession({ id: one.sessionId }, app.asProject);
  assert.is(session?.status, 'COMPLETED');
});

test('deleting a context deletes its content', async () => {
  await using app = await openContext();
  const one = await app.start();
  const { blobId } = await app.save(one.leaseId, 'one');
  await app.end(one.leaseId);
  assert.ok(app.files().includes(blobId));
  await app.clients.contexts.deleteContext({ id: app.created.id }, app.asProject);
  assert.not.ok(app.files().includes(blobId));
});

test('a session whose context is deleted before the lease starts without one', async () => {
  await using app = await openContext();
  await app.accept({ id: app.created.id, persist: true });
  await app.clients.contexts.deleteContext({ id: app.created.id }, app.asProject);
  const run = await app.take();
  assert.is(run.context, undefined);
});

test('only a session with persist saves, and only a blob of its lease', async () => {
  await using app = await openContext();
  const reading = await app.start({ id: app.created.id });
  const refused = await faultOf(app.save(reading.leaseId, 'no'));
  assert.is(refused.reason, 'INVALID_FIELD');
  const writing = await app.start();
  const archive = await app.upload('an archive');
  for (const blobId of [archive, crypto.randomUUID(), 'x']) {
    const save = app.clients.runners.saveContext(
      { leaseId: writing.leaseId, blobId },
      app.asRunner,
    );
    assert.is((await faultOf(save)).reason, 'INVALID_FIELD', blobId);
  }
  assert.is(await textOf(app, await app.start()), null);
});

test('a lost or superseded lease saves nothing', async () => {
  await using app = await openContext();
  const one = await app.start();
  const blobId = await app.write(one.leaseId, 'one');
  await app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  const save = app.clients.runners.saveContext({ leaseId: one.leaseId, blobId }, app.asRunner);
  assert.is((await faultOf(save)).reason, 'LEASE_LOST');
  assert.is((await faultOf(app.write(one.leaseId, 'two'))).reason, 'LEASE_LOST');
  const { contexts } = app.clients;
  const download = contexts.getContextDownload({ id: app.created.id }, app.asProject);
  assert.is((await faultOf(download)).reason, 'RESOURCE_NOT_FOUND');
});

test('content with a missing file fails its session only', async () => {
  await using app = await openContext();
  const one = await app.start();
  const { blobId } = await app.save(one.leaseId, 'one');
  rmSync(join(app.dir, 'blobs', blobId));
  const { invocation } = await app.accept({ id: app.created.id });
  const id = must(invocation, 'invocation').id;
  await app.accept(undefined);
  const next = await app.take();
  assert.is(next.context, undefined);
  const read = await app.clients.invocations.getInvocation({ id }, app.asProject);
  assert.is(read.invocation?.cause?.code, 'INTERNAL_ERROR');
});

test("another project's context can be neither used nor read", async () => {
  await using app = await openContext();
  const other = { metadata: { 'x-svc-api-key': await addProject(app) } };
  const wanted = { projectId: undefined, name: undefined };
  const { id } = await app.clients.contexts.createContext(wanted, other);
  const uses = [
    () => app.accept({ id }),
    () => app.clients.contexts.getContextDownload({ id }, app.asProject),
    () => app.clients.contexts.updateContext({ id }, app.asProject),
  ];
  for (const use of uses) {
    const fault = await faultOf(use() as Promise<unknown>);
    assert.equal([fault.row.http, fault.message], [404, 'Context not found.']);
  }
});

test.run();
