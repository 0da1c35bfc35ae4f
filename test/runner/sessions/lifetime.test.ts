/** When a session ends: each rule with its counterexample. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLifetime, type SessionTimes } from '../../../runner/sessions/lifetime.ts';

const life = suite('runner/sessions/lifetime');
const LONG_MS = 1_000_000;
const SOON_MS = 5;
/** Timers of the turn have run by then. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

type Scene = { keepAlive?: boolean } & Partial<Omit<SessionTimes, 'idleMs'>>;

function open({ keepAlive = false, ...given }: Scene = {}) {
  const longest = { connectMs: LONG_MS, graceMs: LONG_MS };
  const times = { ...longest, returnMs: LONG_MS, resumeMs: LONG_MS, ...given };
  const signals = {
    released: new AbortController(),
    ending: new AbortController(),
    lost: new AbortController(),
  };
  const one = openLifetime({
    keepAlive,
    times,
    signals: {
      released: signals.released.signal,
      ending: signals.ending.signal,
      lost: signals.lost.signal,
    },
  });
  return { one, signals, [Symbol.dispose]: () => one[Symbol.dispose]() };
}

life('the time limit: TIMED_OUT with 1001, with or without clients', async () => {
  for (const clients of [0, 2]) {
    using scene = open({ keepAlive: true });
    scene.one.begin(SOON_MS);
    scene.one.clients(clients);
    const end = { end: 'TIMED_OUT', reason: 'session timed out', code: 1001 };
    assert.equal(await scene.one.ended, end);
  }
});

life('no first client: TIMED_OUT; a client or a viewer in time prevents it', async () => {
  using empty = open({ connectMs: SOON_MS });
  empty.one.begin(LONG_MS);
  assert.is((await empty.one.ended).reason, 'nobody connected in time');
  assert.not.ok(empty.one.wasVisited);
  for (const come of ['clients', 'visited'] as const) {
    using met = open({ connectMs: SOON_MS, keepAlive: true });
    met.one.begin(20 * SOON_MS);
    met.one[come](1);
    assert.is((await met.one.ended).reason, 'session timed out');
    assert.ok(met.one.wasVisited);
  }
});

life('while it is held for a person, no client needs to be connected', async () => {
  for (const come of ['clients', undefined] as const) {
    using scene = open({ connectMs: SOON_MS, graceMs: SOON_MS });
    scene.one.hold(true);
    scene.one.begin(20 * SOON_MS);
    if (come) {
      scene.one.clients(1);
      scene.one.clients(0);
    }
    assert.is((await scene.one.ended).reason, 'session timed out', String(come));
  }
});

life('after a hold, a client that has left gets the time of a first one', async () => {
  using left = open({ connectMs: SOON_MS });
  left.one.begin(LONG_MS);
  left.one.clients(1);
  left.one.hold(true);
  left.one.clients(0);
  left.one.hold(false);
  assert.is((await left.one.ended).reason, 'its last client has left');
  using kept = open({ connectMs: SOON_MS, graceMs: SOON_MS, keepAlive: true });
  kept.one.begin(20 * SOON_MS);
  kept.one.clients(1);
  kept.one.hold(true);
  kept.one.clients(0);
  kept.one.hold(false);
  assert.is((await kept.one.ended).reason, 'session timed out');
  using unmet = open({ connectMs: SOON_MS });
  unmet.one.hold(true);
  unmet.one.begin(LONG_MS);
  unmet.one.hold(false);
  assert.is((await unmet.one.ended).reason, 'nobody connected in time');
});

life('a client before the begin counts as the first client', async () => {
  using scene = open({ connectMs: SOON_MS });
  scene.one.clients(1);
  scene.one.begin(20 * SOON_MS);
  assert.is((await scene.one.ended).reason, 'session timed out');
});

life(
  'the last client disconnects: COMPLETED after the grace, unless one connects again',
  async () => {
    using left = open({ graceMs: SOON_MS });
    left.one.begin(LONG_MS);
    left.one.clients(2);
    left.one.clients(1);
    left.one.clients(0);
    const end = { end: 'COMPLETED', reason: 'its last client has left', code: 1000 };
    assert.equal(await left.one.ended, end);

    using back = open({ graceMs: SOON_MS });
    back.one.begin(20 * SOON_MS);
    back.one.clients(1);
    back.one.clients(0);
    back.one.clients(1);
    assert.is((await back.one.ended).end, 'TIMED_OUT');
  },
);

life('a client whose connection broke may come back within a longer time', async () => {
  using gone = open({ graceMs: 0, returnMs: 4 * SOON_MS });
  gone.one.begin(LONG_MS);
  gone.one.clients(1);
  const brokenAt = performance.now();
  gone.one.clients(0, 'broken');
  assert.is((await gone.one.ended).reason, 'its last client has left');
  assert.ok(performance.now() - brokenAt > 3 * SOON_MS);

  using other = open({ graceMs: 0 });
  other.one.begin(20 * SOON_MS);
  other.one.clients(2);
  other.one.clients(1, 'broken');
  other.one.clients(0); // this one has left, the other one is still awaited
  assert.is((await other.one.ended).reason, 'session timed out');

  using back = open({ graceMs: 0 });
  back.one.begin(LONG_MS);
  back.one.clients(1);
  back.one.clients(0, 'broken');
  back.one.clients(1);
  back.one.clients(0); // it has come back, and has left
  assert.is((await back.one.ended).reason, 'its last client has left');
});

life('a connection that may be resumed is awaited for the longer of both times', async () => {
  for (const times of [
    { returnMs: 0, resumeMs: 4 * SOON_MS },
    { returnMs: 4 * SOON_MS, resumeMs: 0 },
  ]) {
    using gone = open({ graceMs: 0, ...times });
    gone.one.begin(LONG_MS);
    gone.one.clients(1);
    const brokenAt = performance.now();
    gone.one.clients(0, 'held');
    gone.one.clients(0); // it has been ended, and its client may still connect anew
    assert.is((await gone.one.ended).reason, 'its last client has left');
    assert.ok(performance.now() - brokenAt > 3 * SOON_MS);
  }
  using other = open({ graceMs: 0, returnMs: 0 });
  other.one.begin(20 * SOON_MS);
  other.one.clients(2);
  other.one.clients(1, 'held');
  other.one.clients(0, 'broken');
  assert.is((await other.one.ended).reason, 'session timed out', 'the first one is awaited');
  using back = open({ graceMs: 0 });
  back.one.begin(LONG_MS);
  back.one.clients(1);
  back.one.clients(0, 'held');
  back.one.clients(1);
  back.one.clients(0);
  assert.is((await back.one.ended).reason, 'its last client has left');
});

life('with keepAlive a session needs no client', async () => {
  using scene = open({ keepAlive: true, graceMs: 0 });
  scene.one.begin(20 * SOON_MS);
  scene.one.clients(1);
  scene.one.clients(0);
  assert.is((await scene.one.ended).reason, 'session timed out');
});

life('released, ending, lost: at once, also before the begin', async () => {
  const expected = {
    released: { end: 'COMPLETED', reason: 'the session was released', code: 1000 },
    ending: { end: 'ERROR', reason: 'the service is shutting down', code: 1001 },
    lost: { end: 'ERROR', reason: 'the runner was lost', code: 1011 },
  } as const;
  for (const name of ['released', 'ending', 'lost'] as const) {
    using scene = open();
    scene.signals[name].abort();
    assert.ok(scene.one.done.aborted);
    assert.equal(await scene.one.ended, expected[name]);
  }
});

life('a crash is ERROR with 1011; a later end changes nothing', async () => {
  using scene = open({ graceMs: 0 });
  scene.one.crashed('the browser was lost');
  scene.signals.released.abort();
  scene.one.begin(0);
  scene.one.clients(0);
  await turn();
  assert.equal(await scene.one.ended, { end: 'ERROR', reason: 'the browser was lost', code: 1011 });
});

life('the end leaves no timer and no listener', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  {
    using scene = open();
    scene.one.begin(LONG_MS);
    scene.one.clients(1);
    scene.one.clients(0);
  }
  assert.is(timers(), before);
});

life.run();
