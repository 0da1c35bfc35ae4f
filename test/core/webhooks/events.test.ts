/**
 * Each event of an invocation or a build is written once per transition, whatever is repeated, lost
 * or started anew in between: proto/spec/webhooks.md 2, 11.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../core/main.ts';
import { EVENT_TYPES } from '../../../core/webhooks/webhooks.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type {
  CompleteBuildRequest,
  CompleteInvocationRequest,
} from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { rowsOf } from '../../support/core/database.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, configOn, HOLDER, KEY } from '../boot.ts';

const events = suite('core/webhooks/events');

const FAILURE = {
  $case: 'failure',
  value: { code: 'WORKLOAD_ERROR', message: 'no', name: 'Error', stack: '' },
} as const satisfies CompleteInvocationRequest['outcome'];
const SUCCESS = { $case: 'resultsJson', value: '1' } as const;

/** A core whose project has a webhook for every type. */
async function bootHeard(): Promise<Booted> {
  const app = await boot({ TABERN_SWEEP_MS: '50' });
  const wanted = { endpoint: 'https://example.com/', eventTypes: [...EVENT_TYPES] };
  await app.clients.webhooks.createWebhook(wanted, app.asProject);
  return app;
}

/** The events of a resource, oldest first, without `functions.`; one delivery each. */
async function toldOf(app: Booted, resourceId: string): Promise<string[]> {
  const rows = await rowsOf<{ type: string; deliveries: number }>(
    app.dir,
    `SELECT type, (SELECT COUNT(*) FROM deliveries WHERE event_id = events.id) AS deliveries
    FROM events WHERE resource_id = ? ORDER BY seq`,
    resourceId,
  );
  for (const { deliveries } of rows) assert.is(deliveries, 1);
  return rows.map(({ type }) => type.replace('functions.', ''));
}

async function startOne(app: Booted, functionId: string) {
  const { id } = await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const complete = async (outcome: CompleteInvocationRequest['outcome']) => {
    const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
    return (await app.clients.runners.completeInvocation(end, app.asRunner)).accepted;
  };
  return { id, leaseId, complete };
}

const LIVED = ['invocations.pending', 'invocations.running'];

for (const [what, outcome, told] of [
  ['succeeds', SUCCESS, 'invocations.completed'],
  ['fails', FAILURE, 'invocations.failed'],
] as const) {
  events(`an invocation that ${what}: three events, however often it is reported`, async () => {
    await using app = await bootHeard();
    const { id, complete } = await startOne(app, await app.publish({ name: 'f' }));
    assert.equal(await toldOf(app, id), LIVED);
    assert.is(await complete(outcome), true);
    await complete(outcome);
    await complete(outcome === SUCCESS ? FAILURE : SUCCESS);
    assert.equal(await toldOf(app, id), [...LIVED, told]);
  });
}

const REFUSED = {
  $case: 'failure',
  value: { code: 'BUILD_ERROR', message: 'no' },
} as const satisfies CompleteBuildRequest['outcome'];

for (const [what, isGood, told] of [
  ['succeeds', true, 'builds.completed'],
  ['fails', false, 'builds.failed'],
] as const) {
  events(`a build that ${what}: two events, however often it is reported`, async () => {
    await using app = await bootHeard();
    const wanted = { entrypoint: './index.ts', archiveBlobId: await app.upload('archive') };
    const { build } = await app.clients.functions.createBuild(wanted, app.asProject);
    const { id } = must(build, 'build');
    const { leaseId } = must((await app.lease('BUILD'))[0], 'work');
    const bundleBlobId = await app.upload('bundle', leaseId);
    const manifests = [{ name: 'f', sessionConfigJson: '', paramsSchemaJson: '' }];
    const built: CompleteBuildRequest['outcome'] = {
      $case: 'success',
      value: { bundleBlobId, manifests },
    };
    for (const one of isGood ? [built, built, REFUSED] : [REFUSED, REFUSED, built]) {
      await app.clients.runners.completeBuild({ leaseId, outcome: one }, app.asRunner);
    }
    assert.equal(await toldOf(app, id), ['builds.running', told]);
  });
}

events('a lost lease emits one failure, and a late result no event', async () => {
  await using app = await bootHeard();
  const { id, complete } = await startOne(app, await app.publish({ name: 'f' }));
  app.clock.advance(300_001);
  const told = [...LIVED, 'invocations.failed'];
  await until(async () => (await toldOf(app, id)).length === told.length);
  assert.is(await complete(SUCCESS), false);
  assert.equal(await toldOf(app, id), told);
});

events("a new instance of the runner fails the old one's work: one event", async () => {
  await using app = await bootHeard();
  const { id, complete } = await startOne(app, await app.publish({ name: 'f' }));
  const register = () =>
    app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  await register();
  await register();
  assert.is(await complete(FAILURE), false);
  assert.equal(await toldOf(app, id), [...LIVED, 'invocations.failed']);
});

events('an invocation that waited too long fails without a run, with one event', async () => {
  await using app = await bootHeard();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  app.clock.advance(3_600_001);
  await until(async () => (await toldOf(app, id)).length === 2);
  app.clock.advance(3_600_001);
  assert.equal(await app.lease('INVOCATION'), []);
  assert.equal(await toldOf(app, id), ['invocations.pending', 'invocations.failed']);
});

events('a restart of core repeats no event and loses none', async () => {
  await using app = await bootHeard();
  const functionId = await app.publish({ name: 'f' });
  const [running, ended] = [await startOne(app, functionId), await startOne(app, functionId)];
  await ended.complete(SUCCESS);
  const waiting = await app.invoke(functionId);
  await app.core.close();

  const config = configOn(app.dir, { TABERN_API_KEY: KEY });
  const log = openLog({ role: 'core', level: 'silent' });
  await using core = await startCore(config, log, { now: app.clock.now });
  const { runners } = core.clients;
  for (const { leaseId } of [running, ended]) {
    const end = { leaseId, outcome: SUCCESS, sessionStartMs: 0, steps: [] };
    for (let n = 0; n < 2; n += 1) await runners.completeInvocation(end, app.asRunner);
  }
  const told = [...LIVED, 'invocations.completed'];
  for (const { id } of [running, ended]) assert.equal(await toldOf(app, id), told);
  assert.equal(await toldOf(app, waiting.id), ['invocations.pending']);
  const lease = { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 0 } as const;
  const { work } = await runners.leaseWork(lease, app.asRunner);
  const leaseIds = work.map(({ leaseId }) => leaseId);
  for (let n = 0; n < 2; n += 1) await runners.reportRunner({ ...HOLDER, leaseIds }, app.asRunner);
  assert.equal(await toldOf(app, waiting.id), LIVED);
});

events.run();
