import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLogReaders } from '../../../core/common/log-readers.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { openReceipts } from '../../../core/files/receipts.ts';
import { secretValues } from '../../../core/functions/secret-values.ts';
import { openQuotas } from '../../../core/projects/quotas.ts';
import { runnerService } from '../../../core/runners/leases.ts';
import { viewTokens } from '../../../core/sessions/live-view.ts';
import { sessionSecrets } from '../../../core/sessions/proxy-secrets.ts';
import { signingKeys } from '../../../core/sessions/signing-keys.ts';
import type { Store } from '../../../core/store/types.ts';
import { openValidator } from '../../../core/validation/validator.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../proto/rpc/services.ts';
import { appendLines } from '../../support/core/reports.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { boot, HOLDER } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/runners/leases');

const INVOCATION = { ...HOLDER, kind: 'INVOCATION', max: 1 } as const;

test('only the runner token is accepted', async () => {
  await using app = await boot();
  const { runners } = app.clients;
  for (const options of [app.asProject, app.asGateway]) {
    assert.is((await faultOf(runners.registerRunner(HOLDER, options))).reason, 'TOKEN_REQUIRED');
  }
  assert.is((await faultOf(runners.registerRunner(HOLDER))).reason, 'API_KEY_MISSING');
});

test('an invocation wakes a waiting poll, with all members of the work item', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'title', config: '{"timeout":60}' });
  const waiting = app.lease('INVOCATION', 25_000);
  const { id, sessionId, versionId } = await app.invoke(functionId, { url: 'x' });
  const [work] = await waiting;
  if (work?.item?.$case !== 'invocation') throw new Error('no invocation');
  const { signingKey, bundleSha256, bundleBlobId, projectId, ...rest } = work.item.value;
  assert.equal(rest, {
    invocationId: id,
    sessionId,
    versionId,
    functionName: 'title',
    region: 'us-west-2',
    paramsJson: '{"url":"x"}',
    sessionParamsJson: '{"timeout":60}',
    timeoutMs: 60_000,
    context: undefined,
    extension: undefined,
    moreExtensions: [],
    caCertificates: [],
    secrets: [],
  });
  assert.match(signingKey, /^[\w-]{64}$/);
  assert.match(bundleSha256, /^[0-9a-f]{64}$/);
});

test('without work the answer is empty when the wait is over', async () => {
  await using app = await boot();
  assert.equal(await app.lease('INVOCATION', 30), []);
});

test('no work stays leased when the caller disconnects', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const leaving = new AbortController();
  const options = { ...app.asRunner, signal: leaving.signal };
  const left = app.clients.runners.leaseWork({ ...INVOCATION, waitMs: 10_000 }, options);
  const { id } = await app.invoke(functionId); // its wake has reached the lease: now it is taken
  leaving.abort();
  const answer = await left.then(
    ({ work }) => work,
    () => [],
  );
  const [work] = answer.length > 0 ? answer : await app.lease('INVOCATION', 25_000);
  assert.is(work?.item?.$case === 'invocation' && work.item.value.invocationId, id);
});

test('work acquired while its caller disconnects is put back', async () => {
  const [engine] = ENGINES;
  await using bench = await openBench(must(engine, 'engine'));
  const projectId = await bench.project('p');
  const { id } = await bench.accept(projectId, await bench.publish(projectId));
  const events = await bench.listen(projectId);
  const leaving = new AbortController();
  const store: Store = {
    ...bench.store,
    async leaseWork(wanted) {
      const work = await bench.store.leaseWork(wanted);
      leaving.abort(new Fault('CANCELLED', 'The caller left.'));
      return work;
    },
  };
  const closing = new AbortController().signal;
  await using validator = openValidator();
  const sealer = sealerOf(Buffer.alloc(32));
  const service = runnerService({
    store,
    tokens: viewTokens(sealer, () => T0),
    validator,
    now: () => T0,
    leaseMs: 15_000,
    closing,
    sealer,
    files: await openBlobFiles(join(bench.dir, 'blobs')),
    signingKeys: signingKeys(sealer),
    log: openLog({ role: 'core', level: 'silent' }),
    quotas: openQuotas({ store, defaults: readCoreConfig({}).quotas }),
    readiness: { record: () => undefined },
    readers: openLogReaders(bench.store, () => T0),
    receipts: openReceipts({ sealer, place: bench.dir, now: () => T0 }),
    secrets: sessionSecrets(sealer),
    secretValues: secretValues({ store, sealer, now: () => T0 }),
  });
  const call = { signal: leaving.signal, deadline: performance.now() + 30_000, metadata: {} };
  const left = service.leaseWork({ ...INVOCATION, waitMs: 10_000 }, { call });
  assert.is((await faultOf(left)).reason, 'CANCELLED');
  assert.is((await bench.store.getInvocation({ id, projectId }))?.status, 'PENDING');
  assert.equal(await events(), [], 'nobody was told that it ran');
  assert.is((await bench.lease('invocation'))[0]?.id, id);
});

test('work of a disconnected gRPC caller goes to the next caller', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  using channel = new Channel(app.core.address, credentials.createInsecure());
  const { runners } = remoteClients(channel);
  const leaving = new AbortController();
  const options = { ...app.asRunner, signal: leaving.signal };
  const left = faultOf(runners.leaseWork({ ...INVOCATION, waitMs: 20_000 }, options));
  leaving.abort();
  assert.is((await left).reason, 'CANCELLED');
  const { id } = await app.invoke(functionId);
  const [work] = await app.lease('INVOCATION', 25_000);
  assert.is(work?.item?.$case === 'invocation' && work.item.value.invocationId, id);
});

test('work of a runner that does not renew goes on for minutes, then it is ended', async () => {
  await using app = await boot({ TABERN_SWEEP_MS: '50' });
  const { runners } = app.clients;
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const [work] = await app.lease('INVOCATION');
  const renewal = { ...HOLDER, leaseIds: [work?.leaseId ?? ''] };
  for (const silentMs of [0, 250_000, 250_000]) {
    app.clock.advance(silentMs);
    const { leaseIds } = await runners.reportRunner(renewal, app.asRunner);
    assert.equal(leaseIds, renewal.leaseIds, 'a late renewal is accepted');
  }
  app.clock.advance(300_001);
  const read = async () => {
    const { invocation } = await app.clients.invocations.getInvocation({ id }, app.asProject);
    return invocation?.status === 'FAILED' ? invocation : undefined;
  };
  const ended = await until(read);
  assert.is(ended.cause?.code, 'INTERNAL_ERROR');
  assert.is(ended.cause?.message, 'the runner was lost');
});

test('every call of a superseded instance is refused', async () => {
  await using app = await boot();
  const { runners } = app.clients;
  await runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  assert.is((await faultOf(app.lease('INVOCATION'))).reason, 'LEASE_LOST');
  const renewal = { ...HOLDER, leaseIds: [] };
  assert.is((await faultOf(runners.reportRunner(renewal, app.asRunner))).reason, 'LEASE_LOST');
});

test('a draining instance is leased no work, its poll ends, and its leases continue', async () => {
  await using app = await boot();
  const { runners } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  await app.invoke(functionId);
  const leaseId = must((await app.lease('INVOCATION'))[0], 'work').leaseId;
  const polls = [app.lease('INVOCATION', 25_000), app.lease('SESSION', 25_000)].map(faultOf);
  const renew = (draining?: boolean) =>
    runners.reportRunner({ ...HOLDER, leaseIds: [leaseId], draining }, app.asRunner);
  assert.equal((await renew(true)).leaseIds, [leaseId]);
  for (const { reason } of await Promise.all(polls)) assert.is(reason, 'DRAINING');
  const { id } = await app.invoke(functionId);
  assert.equal((await renew()).leaseIds, [leaseId], 'its work goes on');
  assert.is((await faultOf(app.lease('INVOCATION'))).reason, 'DRAINING', 'it still drains');

  const other = { runnerId: 'other', instanceId: 'its' };
  await runners.registerRunner(other, app.asRunner);
  const wanted = { ...INVOCATION, ...other, waitMs: 10_000 };
  const { work } = await runners.leaseWork(wanted, app.asRunner);
  const [item] = work.map((one) => one.item);
  assert.is(item?.$case === 'invocation' && item.value.invocationId, id);
});

test('a result is stored, and a too large one fails the invocation', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const run = async (resultsJson: string) => {
    const { id } = await app.invoke(functionId);
    const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
    const outcome = { $case: 'resultsJson', value: resultsJson } as const;
    const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
    await app.clients.runners.completeInvocation(end, app.asRunner);
    return (await app.clients.invocations.getInvocation({ id }, app.asProject)).invocation;
  };
  assert.equal((await run('{"deep":[1,null]}'))?.results, { deep: [1, null] });
  assert.is((await run('null'))?.results, undefined);
  assert.is((await run('0'))?.results, 0);
  const large = await run(`"${'x'.repeat(6 << 20)}"`);
  assert.is(large?.status, 'FAILED');
  assert.is(large?.cause?.code, 'WORKLOAD_ERROR');
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  assert.is((await run(nested(300)))?.status, 'COMPLETED');
  for (const tooDeep of [nested(301), `${'['.repeat(9_000)}${']'.repeat(9_000)}`]) {
    const deep = await run(tooDeep);
    assert.is(deep?.status, 'FAILED');
    assert.is(deep?.cause?.code, 'WORKLOAD_ERROR');
  }
  for (const none of ['{', '', `[${'1,'.repeat(100_000)}]`]) {
    const bad = await run(none);
    assert.equal([bad?.status, bad?.cause?.message], ['FAILED', 'The result is not JSON.']);
  }
});

test('log lines are readable during the run, and refused after its end', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const lines = [{ message: 'one', timestamp: 1_700_000_000_000.5, level: 'warn' }];
  const { runners, invocations } = app.clients;
  await appendLines(app, { leaseId, first: 0, lines });
  await appendLines(app, { leaseId, first: 0, lines });
  assert.equal(await invocations.listInvocationLogs({ id }, app.asProject), {
    logs: lines,
    total: 1,
  });
  await runners.completeInvocation(
    { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] },
    app.asRunner,
  );
  const late = appendLines(app, { leaseId, first: 1, lines });
  assert.is((await faultOf(late)).reason, 'LEASE_LOST');
});

test('closing core ends waiting calls', async () => {
  const app = await boot();
  const waiting = app.lease('INVOCATION', 25_000).catch(() => []); // may fail during the close
  const startedAt = performance.now();
  await app[Symbol.asyncDispose]();
  await waiting;
  assert.ok(performance.now() - startedAt < 20_000, 'sooner than the wait was to end');
});

test.run();
