/** A backlog at one endpoint costs a claim nothing: proto/spec/webhooks.md 3. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DUE, PENDING } from '../../../core/store/sqlite/webhooks/claims.ts';
import { bootDeliveries, OK, TYPE } from '../../support/core/deliveries.ts';

const claims = suite('core/webhooks/claim-time');
const QUEUED = 500_000;
const ROUNDS = 60;
/**
 * In milliseconds, of the fastest claim and report of many. It takes some 0.3; a scan of the queue
 * takes 75 and more each time, so that a busy machine passes and a lost index does not.
 */
const BOUND_MS = 20;

function fill(app: ReturnType<typeof bootDeliveries>, webhookId: string): void {
  const at = app.clock.now();
  const ofEvents = '(id, project_id, type, resource_id, body, created_at)';
  app.db.exec(`
    WITH RECURSIVE numbers(n) AS (
      SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${QUEUED})
    INSERT INTO deliveries (event_id, webhook_id, state, due, created_at)
    SELECT 'event' || n, '${webhookId}', 'pending', ${at} + n, ${at} FROM numbers;
    INSERT INTO events ${ofEvents}
    SELECT event_id, '${app.projectId}', '${TYPE}', event_id, x'7b7d', ${at}
    FROM deliveries WHERE id <= ${8 * ROUNDS + 8};
    UPDATE webhooks SET next_due = ${at} + 1`);
}

claims('backlog-500k-claim-time: neither a claim nor a report scans the queue', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  fill(app, id);
  app.clock.advance(QUEUED);
  const times = { claim: [] as number[], report: [] as number[] };
  for (let n = 0; n < ROUNDS; n += 1) {
    app.clock.advance(1_000);
    const startedAt = performance.now();
    const taken = await app.claim();
    const claimedAt = performance.now();
    assert.is(taken.length, 8);
    await app.report(taken.map((claim) => [claim, OK]));
    times.claim.push(claimedAt - startedAt);
    times.report.push(performance.now() - claimedAt);
  }
  for (const [what, all] of Object.entries(times)) {
    assert.ok(Math.min(...all) < BOUND_MS, `a ${what} took ${Math.min(...all)} ms`);
  }

  // At its cap, it is not looked through in vain.
  await app.claim();
  const vain: number[] = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    const startedAt = performance.now();
    assert.equal(await app.claim(), []);
    vain.push(performance.now() - startedAt);
  }
  assert.ok(Math.min(...vain) < BOUND_MS, `one in vain took ${Math.min(...vain)} ms`);
});

claims('backlog-500k-claim-time: the plan names the indexes, and sorts no queue', async () => {
  await using app = bootDeliveries();
  const plan = (sql: string, ...values: unknown[]) =>
    app.rows(`EXPLAIN QUERY PLAN ${sql}`, ...values).map(({ detail }) => String(detail));
  const pending = plan(PENDING, 'id', 1, 8);
  assert.match(
    pending.join('\n'),
    /SEARCH deliveries USING INDEX deliveries_due \(webhook_id=\? AND due<\?\)/,
  );
  assert.not.match(pending.join('\n'), /TEMP B-TREE|SCAN/);
  const due = plan(DUE, { at: 1, perProjectMax: 32, slackMs: 980 }).join('\n');
  assert.match(due, /SEARCH webhooks USING INDEX webhooks_due \(next_due<\?\)/);
  assert.not.match(due, /SCAN (webhooks|events)/);
  // Of deliveries, what is in flight: the partial index holds nothing else.
  assert.match(due, /SCAN deliveries USING INDEX deliveries_leased/);
});

claims.run();
