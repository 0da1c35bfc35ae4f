/** Removal of old rows: proto/spec/webhooks.md 9, 10. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { skipBacklogs } from '../../../core/maintenance/backlogs.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { bootDeliveries, HOUR, OK, only } from '../../support/core/deliveries.ts';
import { purgeAt } from '../../support/core/retention.ts';

const janitor = suite('core/maintenance/retention');
const DAY = 24 * HOUR;
type App = ReturnType<typeof bootDeliveries>;

const { signal } = new AbortController();

async function cleanIn(app: App, pendingMax = 100_000): Promise<unknown[]> {
  const log = openLog({ role: 'test', level: 'silent' });
  const lines: unknown[] = [];
  log.warn = ((facts: unknown) => void lines.push(facts)) as typeof log.warn;
  const options = { store: app.store, log, now: app.clock.now, pendingMax };
  await purgeAt(app.clock.now(), ['events and deliveries'], { store: app.store });
  await skipBacklogs(options, signal);
  return lines;
}

const countsOf = (app: App) =>
  ['events', 'deliveries', 'attempts', 'webhooks', 'listeners'].map((table) =>
    Number(app.rows(`SELECT COUNT(*) AS n FROM ${table}`)[0]?.['n']),
  );

janitor('an event is removed with deliveries and attempts after 30 days, not before', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), OK]]);
  app.clock.advance(30 * DAY);
  await cleanIn(app);
  assert.equal(countsOf(app), [1, 1, 1, 1, 0]);
  app.clock.advance(1);
  app.emit();
  await cleanIn(app);
  assert.equal(countsOf(app), [1, 1, 0, 1, 0]);
});

janitor('pending and in-flight deliveries are kept', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  app.clock.advance(31 * DAY);
  await cleanIn(app);
  const claim = only(await app.claim());
  await cleanIn(app);
  await app.report([[claim, OK]]);
  assert.is(app.states()[0]?.['state'], 'delivered');
  await cleanIn(app);
  assert.equal(countsOf(app), [0, 0, 0, 1, 0]);
});

janitor('a deleted webhook is a tombstone for 30 days; an old listener leaves none', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  const wanted = { cursor: undefined, limit: undefined, wait: undefined };
  await app.webhooks.listEvents(wanted, app.caller);
  await app.webhooks.deleteWebhook({ id }, app.caller);
  app.clock.advance(30 * DAY);
  await cleanIn(app);
  assert.equal(countsOf(app), [1, 1, 0, 1, 0]);
  app.clock.advance(1);
  await cleanIn(app);
  assert.equal(countsOf(app), [0, 0, 0, 0, 0]);
});

janitor('a purge stops at its limit of rows, and the next one continues there', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  for (let n = 0; n < 3; n += 1) app.emit();
  for (const claim of await app.claim()) await app.report([[claim, OK]]);
  const purge = () =>
    app.store.purgeEvents({ before: app.clock.now() + 1, at: app.clock.now(), max: 4 });
  assert.equal([await purge(), await purge(), await purge()], [4, 4, 1]);
  assert.equal(countsOf(app), [0, 0, 0, 1, 0]);
});

janitor('above the limit the oldest pending deliveries are skipped, with a warning', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook('https://example.com/full');
  for (let n = 0; n < 1_203; n += 1) {
    app.emit({}, `r${n}`);
    app.clock.advance(1);
  }
  await app.addWebhook('https://example.com/other');
  app.emit({}, 'last');
  const [line, ...more] = await cleanIn(app, 200);
  assert.equal([line, more], [{ webhookId: id, skipped: 1_004, pendingMax: 200 }, []]);
  const sql = `SELECT state, reason, COUNT(*) AS n, MAX(deliveries.id) AS last FROM deliveries
    WHERE webhook_id = '${id}' GROUP BY state`;
  assert.equal(app.rows(sql), [
    { state: 'pending', reason: null, n: 200, last: 1_204 },
    { state: 'skipped', reason: 'backlog', n: 1_004, last: 1_004 },
  ]);
  const due = app.rows('SELECT MIN(due) AS due FROM deliveries')[0]?.['due'];
  const [row] = app.rows(`SELECT next_due FROM webhooks WHERE id = '${id}'`);
  assert.is(must(row, 'webhook')['next_due'], due);
  assert.equal(await cleanIn(app, 200), [], 'at the limit nothing is skipped');
});

janitor.run();
