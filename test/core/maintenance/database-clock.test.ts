/** The clock that cores of one database follow: that of its server. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { followDatabase } from '../../../core/maintenance/database-clock.ts';
import { openLog } from '../../../proto/common/log.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/maintenance/database-clock');

const SERVER = Date.UTC(2026, 0, 2);
const HOUR_MS = 3_600_000;

/** A clock of a core, whose server's answers take `answerMs`; `measure` waits for one of them. */
async function boot({ isLeader = false } = {}) {
  const at = { steadyMs: 5_000, serverMs: SERVER, answerMs: 0 };
  const recovered: number[] = [];
  let next = Promise.withResolvers<void>();
  let pauses = 0;
  const clock = await followDatabase({
    store: {
      // the answer is written at the end of the wait, as behind other operations
      serverTime() {
        at.steadyMs += at.answerMs;
        at.serverMs += at.answerMs;
        return Promise.resolve(at.serverMs);
      },
      lastTime: () => Promise.resolve(0),
      recoverWork(wanted) {
        recovered.push(wanted.at);
        return Promise.resolve();
      },
      isLeader: () => isLeader,
    },
    log: openLog({ role: 'core', level: 'silent' }),
    leaseMs: 15_000,
    steady: () => at.steadyMs,
    pause(_ms, signal) {
      pauses += 1;
      const ended = new Promise<void>((resolve) => {
        signal?.addEventListener('abort', () => resolve(), { once: true });
      });
      return Promise.race([next.promise, ended]);
    },
  });
  return {
    at,
    clock,
    recovered,
    async measure() {
      const before = pauses;
      const { resolve } = next;
      next = Promise.withResolvers<void>();
      resolve();
      await until(() => pauses > before);
    },
    /** Both clocks go on. */
    pass(ms: number) {
      at.steadyMs += ms;
      at.serverMs += ms;
    },
    [Symbol.asyncDispose]: () => clock[Symbol.asyncDispose](),
  };
}

test("it is the server's, and slow answers do not move it", async () => {
  await using core = await boot();
  assert.is(core.clock.now(), SERVER);
  for (const answerMs of [9_000, 4_000, 0, 60_000]) {
    core.at.answerMs = answerMs;
    await core.measure();
    assert.is(core.clock.now(), core.at.serverMs, `after an answer of ${answerMs} ms`);
    core.pass(10_000);
  }
});

test('a slow first answer is corrected by the next one', async () => {
  await using core = await boot();
  core.at.serverMs += 2_000;
  await core.measure();
  assert.is(core.clock.now(), core.at.serverMs);
  core.at.serverMs -= 1_000;
  await core.measure();
  assert.is(core.clock.now(), core.at.serverMs + 1_000, 'without a step back');
  core.pass(1_500);
  assert.is(core.clock.now(), core.at.serverMs);
});

test('a clock that was set is followed when it was seen twice', async () => {
  await using core = await boot();
  core.at.serverMs -= HOUR_MS;
  await core.measure();
  assert.is(core.clock.now(), SERVER);
  await core.measure();
  assert.is(core.clock.now(), SERVER - HOUR_MS);
  assert.equal(core.recovered, []);
});

test('the leader follows last, and gives leases a full term before', async () => {
  await using core = await boot({ isLeader: true });
  core.at.serverMs += HOUR_MS;
  for (let count = 0; count < 5; count += 1) await core.measure();
  assert.is(core.clock.now(), SERVER);
  await core.measure();
  assert.is(core.clock.now(), SERVER + HOUR_MS);
  assert.equal(core.recovered, [SERVER + HOUR_MS]);
});

test.run();
