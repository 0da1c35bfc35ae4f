/**
 * The nine scenarios of proto/spec/webhooks.md 7, each lived through by the whole engine on a clock
 * that is moved: outbox, claims, schedule, breaker, rule. test/core/delivery/disable.test.ts has
 * the rule alone, to the millisecond.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bootDeliveries, HOUR, OK } from '../../support/core/deliveries.ts';

const days = suite('core/webhooks/five-days');
const DAY = 24 * HOUR;
/** In milliseconds: the breaker lets a probe through this late at most. */
const BREAKER_MS = 60_000;
const GAP_MIN_MS = 600_000;

type Life = {
  /** When events happen, since the start. */
  events: number[];
  /** Whether the n-th attempt, at `at` since the start, succeeds. */
  succeeds?: (at: number, n: number) => boolean;
  untilMs: number;
  /** Core does not run in between. */
  outage?: { from: number; to: number };
};

/** When the webhook was disabled, since the start; undefined when it was not. */
async function live({ events, succeeds = () => false, untilMs, outage }: Life) {
  await using app = bootDeliveries();
  const { clock } = app;
  await app.addWebhook();
  const start = clock.now();
  const beat = () => app.store.beat({ at: clock.now(), gapMinMs: GAP_MIN_MS });
  const left = [...events];
  let [n, next] = [0, 0];
  await beat();
  while (next <= untilMs) {
    const isBack = outage !== undefined && next > outage.from && next < outage.to;
    clock.set(start + (isBack ? outage.to : next));
    const at = clock.now() - start;
    if (isBack) await beat();
    while (left[0] !== undefined && left[0] <= at) app.emit({ at: left.shift() });
    for (let claims = await app.claim(); claims.length > 0; claims = await app.claim()) {
      await app.report(claims.map((claim) => [claim, succeeds(at, n++) ? OK : {}]));
    }
    const [row] = app.rows('SELECT status, disabled_at, next_due, not_before FROM webhooks');
    if (row?.['status'] === 'disabled') return Number(row['disabled_at']) - start;
    const due = row?.['next_due'] == null ? [] : [Number(row['next_due'])];
    const open = due.map((ms) => Math.max(ms, Number(row?.['not_before'])) - start);
    next = Math.max(at + 1, Math.min(left[0] ?? Number.POSITIVE_INFINITY, ...open));
    if (outage === undefined || next <= outage.from) await beatUntil(next);
  }
  return undefined;

  /** Core runs all the time, so it beats all the time. */
  async function beatUntil(since: number): Promise<void> {
    const at = clock.now();
    clock.set(start + Math.min(since, untilMs));
    await app.store.beat({ at: clock.now(), gapMinMs: Number.POSITIVE_INFINITY });
    clock.set(at);
  }
}

const every = (stepMs: number, forMs: number) =>
  Array.from({ length: Math.floor(forMs / stepMs) + 1 }, (_, n) => n * stepMs);

function isAbout(actual: number | undefined, wanted: number, what: string): void {
  const ok = actual !== undefined && actual >= wanted && actual <= wanted + BREAKER_MS;
  assert.ok(ok, `${what}: disabled after ${actual} ms instead of ${wanted}`);
}

days('five-days 1: failing every hour disables at 120 h', async () => {
  isAbout(await live({ events: every(HOUR, 6 * DAY), untilMs: 6 * DAY }), 120 * HOUR, 'hourly');
});

days('five-days 2: one event ever does not disable', async () => {
  assert.is(await live({ events: [0], untilMs: 30 * DAY }), undefined);
});

days('five-days 3: an event after day 5 disables at its retry, not at once', async () => {
  const late = 5 * DAY + 1_000;
  assert.is(await live({ events: [0, late], untilMs: 6 * DAY }), late + 5_000);
});

days('five-days 4: the same, but the retry succeeds: stays', async () => {
  const late = 5 * DAY + 1_000;
  const succeeds = (at: number) => at > late;
  assert.is(await live({ events: [0, late], succeeds, untilMs: 30 * DAY }), undefined);
});

days('five-days 5: an event every 3 days disables at 144 h', async () => {
  const disabled = await live({ events: every(3 * DAY, 30 * DAY), untilMs: 30 * DAY });
  isAbout(disabled, 144 * HOUR + 5_000, 'every 3 days');
});

days('five-days 6: an event every 11 days never disables', async () => {
  const events = every(11 * DAY, 110 * DAY);
  assert.is(await live({ events, untilMs: 120 * DAY }), undefined);
});

days('five-days 7: a success at 4.9 days starts anew', async () => {
  let hadOne = false;
  const succeeds = (at: number) => {
    if (hadOne || at < 4.9 * DAY) return false;
    hadOne = true;
    return true;
  };
  const events = every(HOUR, 6 * DAY);
  assert.is(await live({ events, succeeds, untilMs: 6 * DAY }), undefined);
});

days('five-days 8: one success in twenty never disables', async () => {
  const succeeds = (_at: number, n: number) => n % 20 === 19;
  const events = every(HOUR, 8 * DAY);
  assert.is(await live({ events, succeeds, untilMs: 8 * DAY }), undefined);
});

days('five-days 9: our own outage of two days does not count', async () => {
  const outage = { from: 2 * DAY, to: 4 * DAY };
  const events = every(HOUR, 10 * DAY);
  isAbout(await live({ events, untilMs: 10 * DAY, outage }), 7 * DAY, 'with an outage');
});

days.run();
