/** The console's list of deliveries: all webhooks of a project, with the last attempt. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { consoleService } from '../../../core/console/console.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, OK, TYPE } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';
import { ANY, SERVICE } from './projects.ts';

const test = suite('core/console/deliveries');

type List = ReturnType<typeof consoleService>['listDeliveries'];
type Filter = Partial<Parameters<List>[0]>;

async function openDeliveries(webhooks: number) {
  const app = bootDeliveries();
  const { signal: closing } = new AbortController();
  const isRevoked = async () => false;
  const { listDeliveries } = consoleService({
    ...SERVICE,
    ...app,
    ...app.parts,
    wall: app.clock.now,
    isRevoked,
    closing,
  });
  const names = Array.from({ length: webhooks }, (_, n) => `https://hook-${n}.example/`);
  const ids: string[] = [];
  for (const name of names) ids.push((await app.addWebhook(name)).id);
  const allOf = async (filter: Filter) => {
    const found = [];
    let cursor: string | undefined;
    do {
      const page = await listDeliveries({ ...ANY, limit: 2, ...filter, cursor }, app.caller);
      found.push(...page.deliveries);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
  };
  return { ...app, ids, listDeliveries, allOf };
}

test('each delivery of each webhook is listed once, newest event first', async () => {
  await using app = await openDeliveries(3);
  const resources = Array.from({ length: 5 }, () => newId());
  for (const resource of resources) {
    app.emit({}, resource);
    // Two events of one moment.
    if (resource !== resources[1]) app.clock.advance(1_000);
  }
  for (const limit of [1, 2, 4, 200]) {
    const all = await app.allOf({ limit });
    assert.is(all.length, 15);
    assert.is(new Set(all.map(({ id, webhookId }) => `${id} ${webhookId}`)).size, 15);
    const times = all.map(({ createdAt }) => Number(createdAt));
    assert.equal(
      times,
      times.toSorted((a, b) => b - a),
    );
    assert.is(all[0]?.resourceId, resources[4]);
  }
});

test('each filter selects its deliveries', async () => {
  await using app = await openDeliveries(2);
  const [resource, other] = [newId(), newId()];
  app.emit({}, resource);
  const claims = await app.claim();
  await app.report(claims.map((claim, n) => [claim, n === 0 ? OK : { status: 503 }]));
  app.clock.advance(60_000);
  const later = new Date(app.clock.now());
  app.emit({}, other);
  const [one] = await app.allOf({ status: 'DELIVERED' });
  assert.equal([one?.lastOutcome, one?.resourceId, one?.tries], ['ok', resource, 1]);
  const counts: [Filter, number][] = [
    [{}, 4],
    [{ status: 'PENDING' }, 3],
    [{ status: 'EXHAUSTED' }, 0],
    [{ webhookId: app.ids[1] }, 2],
    [{ resourceId: other }, 2],
    [{ eventType: TYPE }, 4],
    [{ eventType: 'functions.invocations.failed' }, 0],
    [{ text: 'HOOK-1.' }, 2],
    [{ text: resource }, 2],
    [{ from: later }, 2],
    [{ to: later }, 2],
    [{ webhookId: app.ids[1], resourceId: other, status: 'PENDING' }, 1],
  ];
  for (const [filter, count] of counts) {
    assert.is((await app.allOf(filter)).length, count, JSON.stringify(filter));
  }
  const failed = (await app.allOf({ resourceId: resource })).find(
    ({ status }) => status === 'PENDING',
  );
  assert.equal([failed?.lastOutcome, failed?.lastStatusCode], ['http', 503]);
  assert.ok(failed?.nextAttemptAt);
});

test('deliveries of a deleted webhook and of another project are not listed', async () => {
  await using app = await openDeliveries(2);
  app.emit();
  await app.webhooks.deleteWebhook({ id: app.ids[0] ?? '' }, app.caller);
  const left = await app.allOf({});
  assert.equal(
    left.map(({ webhookId }) => webhookId),
    [app.ids[1]],
  );
  const theirs = callerOf(newId());
  const none = { deliveries: [], nextCursor: undefined };
  assert.equal(await app.listDeliveries(ANY, theirs), none);
  assert.equal(await app.listDeliveries({ ...ANY, webhookId: app.ids[1] }, theirs), none);
  for (const field of ['webhookId', 'resourceId'] as const) {
    const fault = await faultOf(app.listDeliveries({ ...ANY, [field]: 'x' }, app.caller));
    assert.is(fault.facts['field'], field);
  }
});

test.run();
