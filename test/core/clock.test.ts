/** The scheduler's clock: spec/webhooks.md 3.10. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { schedulerClock } from '../../core/clock.ts';
import { deliveryService } from '../../core/deliveries.ts';
import { sealerOf } from '../../core/seal.ts';
import { openLog } from '../../proto/log.ts';
import { bootDeliveries, HOUR, only } from '../support/deliveries.ts';

const clock = suite('core/clock');
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);

/** A machine whose clocks are moved by hand. */
function machine(wallMs = START) {
  const at = { wall: wallMs, awake: 5_000.25, boot: 90_000 };
  const sources = { wall: () => at.wall, awake: () => at.awake, sinceBoot: () => at.boot };
  const pass = (ms: number) => {
    at.wall += ms;
    at.awake += ms;
    at.boot += ms;
  };
  return { at, sources, pass };
}

for (const step of [DAY, -DAY]) {
  clock(`clock-step: setting the wall clock by ${step / DAY} d does not move it`, () => {
    const { at, sources, pass } = machine();
    const now = schedulerClock(0, sources);
    pass(1_500);
    at.wall += step;
    pass(1_500);
    assert.is(now(), START + 3_000);
  });

  clock(
    `clock-step: ${step / DAY} d moves no due time; signatures carry the wall clock`,
    async () => {
      await using app = bootDeliveries();
      const { at, sources, pass } = machine();
      const now = schedulerClock(app.clock.now(), sources);
      const sealer = sealerOf(Buffer.alloc(32, 1));
      const log = openLog({ role: 'test', level: 'silent' });
      const parts = { store: app.store, sealer, log, now, wall: sources.wall, random: () => 0.5 };
      const service = deliveryService(parts);
      await app.addWebhook();
      app.emit();
      const claim = async () =>
        (await service.claimDeliveries({ ...app.sender, max: 1, waitMs: 0 }, app.caller)).claims;
      const first = only(await claim());
      assert.is(first.headers['webhook-timestamp'], String(Math.floor(at.wall / 1_000)));
      at.wall += step;
      const { deliveryId, claimSeq, attemptId } = first;
      const end = { outcome: 'HTTP', status: 500, latencyMs: 1, error: 'no' } as const;
      const rest = { response: Buffer.alloc(0), retryAfterSeconds: undefined, abortMessage: false };
      const reports = [{ deliveryId, claimSeq, attemptId, ...end, ...rest }];
      await service.reportAttempts({ ...app.sender, reports, max: 0 }, app.caller);
      pass(4_999);
      assert.equal(await claim(), []);
      pass(1);
      const again = only(await claim());
      assert.is(again.headers['webhook-timestamp'], String(Math.floor(at.wall / 1_000)));
    },
  );
}

clock('clock-step: a start never goes below the last time on disk', () => {
  const { sources, pass } = machine();
  const now = schedulerClock(START + DAY, sources);
  assert.is(now(), START + DAY);
  pass(10);
  assert.is(now(), START + DAY + 10);
  assert.is(schedulerClock(START - DAY, sources)(), START + 10);
});

clock('the last time on disk is that of the heartbeat or of the newest event', async () => {
  await using app = bootDeliveries();
  assert.is(await app.store.lastTime(), 0);
  await app.store.beat({ at: 1_000, gapMinMs: 1 });
  assert.is(await app.store.lastTime(), 1_000);
  await app.addWebhook();
  app.emit();
  assert.is(await app.store.lastTime(), app.clock.now());
});

clock('the time in which the machine slept has passed', () => {
  const { at, sources, pass } = machine();
  const now = schedulerClock(0, sources);
  pass(1_000);
  at.boot += HOUR;
  at.wall += HOUR;
  pass(1_000);
  assert.is(now(), START + HOUR + 2_000);
  pass(500);
  assert.is(now(), START + HOUR + 2_500);
});

clock('the real clocks go forward, in whole milliseconds', () => {
  const now = schedulerClock(0);
  const [first, second] = [now(), now()];
  assert.ok(Number.isInteger(first) && second >= first && Math.abs(first - Date.now()) < 60_000);
});

clock(
  'after a start in the future it is the machine’s again within hours, never going back',
  () => {
    const { at, sources, pass } = machine(START + 3 * HOUR);
    const now = schedulerClock(0, sources);
    pass(1_500);
    at.wall -= 3 * HOUR; // NTP has come
    let last = now();
    for (let second = 0; second < 7 * 3_600; second += 1) {
      pass(1_000);
      const current = now();
      const passed = current - last;
      if (passed < 499 || passed > 1_001) assert.unreachable(`${passed} ms in ${second}`);
      if (second === 590) assert.is(Math.round((current - at.wall) / HOUR), 3, 'a while it waits');
      last = current;
    }
    assert.ok(Math.abs(last - at.wall) <= 1_000, `${last - at.wall}`);
  },
);

clock('times that were written in the future are given up the same way', () => {
  const { at, sources, pass } = machine();
  const now = schedulerClock(START + HOUR, sources);
  assert.is(now(), START + HOUR);
  for (let second = 0; second < 3 * 3_600; second += 1) {
    pass(1_000);
    now();
  }
  assert.ok(Math.abs(now() - at.wall) <= 1_000, `${now() - at.wall}`);
});

clock.run();
