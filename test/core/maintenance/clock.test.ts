/** The scheduler's clock: proto/spec/webhooks.md 10. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealerOf } from '../../../core/common/sealer.ts';
import {
  type SchedulerClock,
  schedulerClock,
  startSteps,
} from '../../../core/maintenance/clock.ts';
import { deliveryService } from '../../../core/webhooks/deliveries.ts';
import { openLog } from '../../../proto/common/log.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { bootDeliveries, HOUR, only, REST } from '../../support/core/deliveries.ts';
import { until } from '../../support/poll.ts';

const clock = suite('core/maintenance/clock');
const DAY = 24 * HOUR;
const SETTLE_MS = 600_000;
const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);

/** A machine whose clocks the test moves. */
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
    const { now } = schedulerClock(0, SETTLE_MS, sources);
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
      const { now } = schedulerClock(app.clock.now(), SETTLE_MS, sources);
      const sealer = sealerOf(Buffer.alloc(32, 1));
      const log = openLog({ role: 'test', level: 'silent' });
      const parts = { store: app.store, sealer, log, now, wall: sources.wall, random: () => 0.5 };
      const service = deliveryService({ ...REST, ...parts });
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
  const { now } = schedulerClock(START + DAY, SETTLE_MS, sources);
  assert.is(now(), START + DAY);
  pass(10);
  assert.is(now(), START + DAY + 10);
  assert.is(schedulerClock(START - DAY, SETTLE_MS, sources).now(), START + 10);
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
  const { now } = schedulerClock(0, SETTLE_MS, sources);
  pass(1_000);
  at.boot += HOUR;
  at.wall += HOUR;
  pass(1_000);
  assert.is(now(), START + HOUR + 2_000);
  pass(500);
  assert.is(now(), START + HOUR + 2_500);
});

clock('the real clocks go forward, in whole milliseconds', () => {
  const { now } = schedulerClock(0, SETTLE_MS);
  const [first, second] = [now(), now()];
  assert.ok(Number.isInteger(first) && second >= first && Math.abs(first - Date.now()) < 60_000);
});

/** Polls each minute for steps, for so many minutes; returns the steps. */
function stepsOf(told: SchedulerClock, pass: (ms: number) => void, minutes: number) {
  return Array.from({ length: minutes }, () => {
    pass(MINUTE);
    return told.step();
  }).filter((step) => step !== undefined);
}

for (const offMs of [2 * HOUR, 30 * DAY, -2 * HOUR, -30 * DAY]) {
  clock(`a clock set by ${offMs / HOUR} h after the start is followed in one step`, () => {
    const { at, sources, pass } = machine(START + 60 * DAY);
    const told = schedulerClock(0, SETTLE_MS, sources);
    assert.equal(stepsOf(told, pass, 30), []);
    at.wall += offMs;
    assert.equal(stepsOf(told, pass, 10), [], 'it is not believed at once');
    const steady = told.steady();
    const [step] = stepsOf(told, pass, 1);
    assert.equal(step, { from: at.wall - offMs, to: at.wall });
    assert.is(told.now(), at.wall);
    assert.is(told.steady(), steady + MINUTE, 'what is kept in memory does not notice');
    assert.equal(stepsOf(told, pass, 30), []);
  });

  clock(`times that were written ${offMs / HOUR} h off are corrected the same way`, () => {
    const { at, sources, pass } = machine(START + 60 * DAY);
    const told = schedulerClock(at.wall + offMs, SETTLE_MS, sources);
    const steps = stepsOf(told, pass, 30);
    assert.is(steps.length, offMs > 0 ? 1 : 0);
    assert.is(told.now(), at.wall);
  });
}

clock('a clock that is corrected within ten minutes causes no step', () => {
  const { at, sources, pass } = machine();
  const told = schedulerClock(0, SETTLE_MS, sources);
  for (const offMs of [DAY, 2 * DAY, 0, -HOUR, 0]) {
    at.wall = told.now() + offMs;
    assert.equal(stepsOf(told, pass, 9), []);
  }
});

clock('the time of a clock that was never set is not used', () => {
  const { at, sources, pass } = machine();
  const told = schedulerClock(0, SETTLE_MS, sources);
  at.wall = 1_000;
  assert.equal(stepsOf(told, pass, 60), []);
});

/** A clock a day ahead that is accepted after 10 ms, and the results of its steps. */
function steps(answer: (step: object) => Promise<void>, isLow = () => false) {
  const { at, sources } = machine();
  const told = schedulerClock(0, 10, sources);
  at.wall += DAY;
  told.step();
  at.awake += 1_000;
  at.boot += 1_000;
  at.wall += 1_000;
  const log = openLog({ role: 'test', level: 'silent' });
  const failed = Promise.withResolvers<Error>();
  const store = { moveTimes: answer };
  const disk = {
    get isLow() {
      return isLow();
    },
  };
  const options = { clock: told, store, disk, log, clockSettleMs: 10, onFatal: failed.resolve };
  const running = startSteps(options);
  const close = () => running[Symbol.asyncDispose]();
  return { at, told, failed: failed.promise, [Symbol.asyncDispose]: close };
}

clock('stored times that cannot be moved are fatal; a close ends the checks', async () => {
  const moved: object[] = [];
  await using app = steps(async (step) => {
    moved.push(step);
    throw new Error('no');
  });
  assert.match((await app.failed).message, /could not be moved/);
  assert.equal(moved, [{ from: app.at.wall - DAY, to: app.at.wall }]);
  assert.is(app.told.now(), app.at.wall - DAY, 'nobody has the new time');
});

for (const reason of ['CORE_UNAVAILABLE', 'STORAGE_FULL'] as const) {
  clock(`a step that ends in ${reason} is not recorded, and is retried`, async () => {
    const during: number[] = [];
    const after: number[] = [];
    await using app = steps(async () => {
      during.push(app.told.now());
      setImmediate(() => after.push(app.told.now())); // as the store waits
      if (during.length < 3) throw new Fault(reason, 'no');
    });
    app.failed.then(assert.unreachable);
    await until(() => after.length === 3);
    const { wall } = app.at;
    assert.equal(during, [wall, wall, wall]);
    assert.equal(after, [wall - DAY, wall - DAY, wall]);
  });
}

clock('no step is recorded while the disk is almost full', async () => {
  let looks = 0;
  let moves = 0;
  const count = async () => {
    moves += 1;
  };
  await using app = steps(count, () => ++looks < 4);
  await until(() => moves === 1);
  assert.is(looks, 4);
  assert.is(app.told.now(), app.at.wall);
});

clock('after a jump by more than a day nothing is too old for a day that passed', () => {
  const { at, sources, pass } = machine(START + 60 * DAY);
  const told = schedulerClock(at.wall - DAY, SETTLE_MS, sources);
  assert.not(told.isHeld(), 'a day of absence');
  at.wall += 2 * DAY;
  assert.is(stepsOf(told, pass, 12).length, 1);
  assert.ok(told.isHeld());
  pass(DAY - 2 * MINUTE);
  assert.ok(told.isHeld());
  pass(MINUTE);
  at.wall -= 40 * DAY;
  assert.is(stepsOf(told, pass, 12).length, 1);
  assert.not(told.isHeld(), 'a step back holds nothing');
  assert.ok(schedulerClock(at.wall - DAY - 1, SETTLE_MS, sources).isHeld());
  assert.not(schedulerClock(0, SETTLE_MS, sources).isHeld(), 'nothing was written');
});

clock.run();
