/**
 * The pool hands out each Chrome once, keeps spares, and waits when all are taken. Chromes are
 * counted, not started.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Chrome } from '../../../runner/browser/launch.ts';
import { openChromePool, type TakeOptions } from '../../../runner/browser/pool.ts';
import { until as eventually } from '../../support/poll.ts';
import { log, until } from './lab.ts';

const pool = suite('runner/browser/pool');

type Made = Chrome & { profileDir: string | undefined; isGone: boolean; die(): void };

/** `answers`: whether the Chrome of that number responds with its pages. */
function factory(
  fail: () => boolean = () => false,
  answers: (number: number) => boolean = () => true,
) {
  const made: Made[] = [];
  const launch = async (options: TakeOptions): Promise<Chrome> => {
    if (fail()) throw new Error('cannot start');
    const { promise: exited, resolve } = Promise.withResolvers<{ code: number; signal: null }>();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const chrome = {
      id: String(made.length),
      profileDir: options.profileDir,
      isGone: false,
      exited,
      pipe: {
        closed,
        onEvent: () => () => {},
        call: async () => {
          if (!answers(Number(chrome.id))) throw new Error('not answered within 10000 ms');
          return { targetInfos: [] };
        },
      },
      /** Its processes are gone, its directory is not yet. */
      die: close,
      kill() {
        chrome.isGone = true;
        close();
        resolve({ code: 0, signal: null });
      },
      async close() {
        chrome.kill();
      },
    } as unknown as Made;
    made.push(chrome);
    return chrome;
  };
  return { made, launch };
}

const never = new AbortController().signal;

pool('a spare that does not respond is killed and replaced', async () => {
  const { made, launch } = factory(
    () => false,
    (number) => number > 0,
  );
  const spares = [{ engine: 'headless-shell', count: 1 } as const];
  const chromes = openChromePool({ launch, spares, max: 1, log });
  await until(() => made.length === 2, 'another spare');
  assert.ok(made[0]?.isGone);
  assert.is((await chromes.take({}, never)).id, '1');
  assert.not.ok(made[1]?.isGone);
  await chromes.close();
});

pool('a spare is ready, used once, and replaced', async () => {
  const { made, launch } = factory();
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 1 }],
    max: 2,
    log,
  });
  await until(() => made.length === 1, 'a spare');
  const taken = await chromes.take({}, never);
  assert.is(taken.id, '0');
  await until(() => made.length === 2, 'another spare');
  await taken.close();
  assert.is((await chromes.take({}, never)).id, '1');
  await chromes.close();
  assert.ok(made.every(({ isGone }) => isGone));
});

const alive = (made: readonly Made[]) => made.filter(({ isGone }) => !isGone).length;

/** A pool of one engine whose processors have room, with one spare that has started. */
async function bursting(wanted: Partial<Parameters<typeof openChromePool>[0]['spares'][number]>) {
  const { made, launch } = factory();
  const stock = {
    engine: 'headless-shell',
    count: 1,
    hasRoom: async () => true,
    ...wanted,
  } as const;
  const chromes = openChromePool({ launch, spares: [stock], sparesMax: 4, max: 9, log });
  await until(() => made.length === 1, 'a spare');
  /** So many sessions at once, which end together. */
  const burst = async (count: number): Promise<string[]> => {
    const all = Array.from({ length: count }, () => chromes.take({}, never));
    const taken = await Promise.all(all);
    for (const chrome of taken) await chrome.close();
    return taken.map(({ id }) => id);
  };
  return { made, chromes, burst };
}

pool('the stock becomes as large as a burst, up to the most', async () => {
  const { made, chromes, burst } = await bursting({});
  await burst(3);
  await until(() => alive(made) === 3, 'as many as the burst');
  await burst(6);
  await until(() => alive(made) === 4, 'the most');
  const ready = made.filter(({ isGone }) => !isGone).map(({ id }) => id);
  assert.equal(await burst(4), ready, 'nobody waits for a start');
  await until(() => alive(made) === 4, 'the most again');
  await chromes.close();
  assert.is(alive(made), 0);
});

pool('sessions one after the other that find no spare are a burst, too', async () => {
  const { made, launch } = factory();
  const slow = async (wanted: TakeOptions): Promise<Chrome> => {
    await pause(50);
    return launch(wanted);
  };
  const stock = { engine: 'headless-shell', count: 1, hasRoom: async () => true } as const;
  const chromes = openChromePool({ launch: slow, spares: [stock], sparesMax: 4, max: 9, log });
  for (let count = 0; count < 12; count += 1) await (await chromes.take({}, never)).close();
  await until(() => alive(made) === 4, 'the most');
  await chromes.close();
});

pool('a spare of a burst starts when the processors have room and no session waits', async () => {
  const { made, launch } = factory();
  const gates: (() => void)[] = [];
  let isGated = false;
  const gated = async (wanted: TakeOptions): Promise<Chrome> => {
    if (isGated) await new Promise<void>((resolve) => gates.push(resolve));
    return launch(wanted);
  };
  const asked: PromiseWithResolvers<void>[] = [];
  const hasRoom = async () => {
    asked.push(Promise.withResolvers<void>());
    await asked.at(-1)?.promise;
    return true;
  };
  const stock = { engine: 'headless-shell', count: 1, hasRoom } as const;
  const chromes = openChromePool({ launch: gated, spares: [stock], sparesMax: 4, max: 9, log });
  await until(() => made.length === 1, 'a spare');
  const burst = await Promise.all([1, 2, 3, 4].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => asked.length === 1 && alive(made) === 1, 'the usual spare needs no room');
  isGated = true;
  const [first, second] = [chromes.take({}, never), chromes.take({}, never)];
  await first;
  await until(() => gates.length > 0, 'the start for the second session');
  asked[0]?.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  const count = gates.length;
  assert.ok(count <= 2, 'its own and the usual spare');
  assert.is(asked.length, 1);
  isGated = false;
  for (const open of gates.splice(0)) open();
  await second;
  await until(() => asked.length === 2, 'the stock grows again');
  asked[1]?.resolve();
  await until(() => alive(made) >= 4, 'two sessions, the usual spare and one of the burst');
  await chromes.close();
});

pool('a spare of a burst takes a free place only', async () => {
  const { launch } = factory();
  const stock = { engine: 'headless-shell', count: 1, hasRoom: async () => true } as const;
  const chromes = openChromePool({ launch, spares: [stock], sparesMax: 9, max: 6, log });
  await until(() => chromes.counts().up === 1, 'a spare');
  const taken = await Promise.all([1, 2, 3, 4, 5, 6].map(() => chromes.take({}, never)));
  await until(() => chromes.counts().up === 7, 'the usual spare');
  await taken[0]?.close();
  await taken[1]?.close();
  await until(() => chromes.counts().up === 6, 'one of the two places is taken by a spare');
  assert.equal(chromes.counts(), { taken: 4, up: 6 });
  for (const chrome of taken.slice(2)) await chrome.close();
  await until(() => chromes.counts().up === 6, 'all six places');
  assert.is(chromes.counts().taken, 0);
  await chromes.close();
});

pool('a spare of a burst gives its place to a session that cannot use it', async () => {
  const { launch } = factory();
  const stocks = [
    { engine: 'headless-shell', count: 1, hasRoom: async () => true },
    { engine: 'chromium', count: 0 },
  ] as const;
  const chromes = openChromePool({ launch, spares: stocks, sparesMax: 9, max: 6, log });
  const burst = await Promise.all([1, 2, 3, 4, 5, 6].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => chromes.counts().up === 6, 'all six places');
  for (const wanted of [{ profileDir: '/profile' }, { engine: 'chromium' }] as const) {
    for (let count = 0; count < 3; count += 1) await chromes.take(wanted, never);
    const { taken, up } = chromes.counts();
    assert.is(up, Math.max(6, taken + 1), 'all places, and the usual spare');
  }
  await chromes.close();
});

pool('starts for sessions that gave up make the stock no larger than the most', async () => {
  const { made, launch } = factory();
  const gates: (() => void)[] = [];
  let isGated = false;
  const gated = async (wanted: TakeOptions): Promise<Chrome> => {
    if (isGated) await new Promise<void>((resolve) => gates.push(resolve));
    return launch(wanted);
  };
  const stock = { engine: 'headless-shell', count: 1, hasRoom: async () => true } as const;
  const chromes = openChromePool({ launch: gated, spares: [stock], sparesMax: 2, max: 9, log });
  const burst = await Promise.all([1, 2, 3, 4, 5, 6].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => alive(made) === 2, 'the most');
  isGated = true;
  const impatient = new AbortController();
  const all = [1, 2, 3, 4, 5, 6].map(() => chromes.take({}, impatient.signal));
  await until(() => gates.length >= 4, 'a start for each that finds no spare');
  impatient.abort(new Error('gave up'));
  const taken = (await Promise.allSettled(all)).filter(({ status }) => status === 'fulfilled');
  assert.is(taken.length, 2);
  isGated = false;
  for (const open of gates) open();
  await until(() => made.length >= 6 + 2 + gates.length, 'all starts');
  assert.ok(alive(made) <= 2 + 2, 'those taken, and the most');
  await chromes.close();
});

pool('failed starts make the stock no larger', async () => {
  let isBroken = true;
  const { made, launch } = factory(() => isBroken);
  const stock = { engine: 'headless-shell', count: 1, hasRoom: async () => true } as const;
  const chromes = openChromePool({ launch, spares: [stock], sparesMax: 9, max: 9, log });
  for (let count = 0; count < 5; count += 1) await chromes.take({}, never).catch(() => undefined);
  isBroken = false;
  await (await chromes.take({}, never)).close();
  await until(() => alive(made) === 1, 'the usual spare');
  await (await chromes.take({}, never)).close();
  await until(() => made.length === 3 && alive(made) === 1, 'and no more');
  await chromes.close();
});

pool('a burst is over when none of its size has come for a while', async () => {
  const { made, chromes, burst } = await bursting({ burstMs: 50, intervalMs: 1_500 });
  await burst(4);
  await until(() => alive(made) === 4, 'the stock of the burst');
  const stocks = new Set<number>();
  await eventually(async () => {
    await burst(1);
    await pause(100); // the next one is a burst of its own
    await until(() => [1, 4].includes(alive(made)), 'its spare, or the end of the burst');
    stocks.add(alive(made));
    return alive(made) === 1;
  });
  assert.equal([...stocks], [4, 1], 'it was kept for a while, single sessions do not prolong it');
  await chromes.close();
});

pool('bursts that go on keep their stock', async () => {
  const { made, chromes, burst } = await bursting({ intervalMs: 1_500 });
  const startedAt = performance.now();
  await burst(4);
  await eventually(async () => {
    await until(() => alive(made) === 4, 'the stock of the burst');
    await burst(4);
    return performance.now() - startedAt > 5_000;
  });
  await chromes.close();
});

pool('a spare of a burst that dies is not replaced: memory may be short', async () => {
  const { made, chromes, burst } = await bursting({});
  await burst(3);
  await until(() => alive(made) === 3, 'the stock of the burst');
  const [dead] = made.filter(({ isGone }) => !isGone);
  const count = made.length;
  dead?.kill();
  await burst(1);
  await until(
    () => alive(made) === 2 && made.length === count + 1,
    'two, with the one taken since',
  );
  await chromes.close();
});

pool('configured spares start one after the other, and need no room', async () => {
  const { made, launch } = factory();
  let starting = 0;
  let most = 0;
  const slow = async (wanted: TakeOptions): Promise<Chrome> => {
    starting += 1;
    most = Math.max(most, starting);
    await new Promise((resolve) => setImmediate(resolve));
    starting -= 1;
    return launch(wanted);
  };
  const hasRoom = () => new Promise<boolean>(() => undefined);
  const stock = { engine: 'headless-shell', count: 6, hasRoom } as const;
  const chromes = openChromePool({ launch: slow, spares: [stock], max: 9, log });
  await until(() => made.length === 6, 'all six');
  assert.ok(most <= 2, `${most} at once`);
  await chromes.close();
});

pool('configured spares come back also while those of a burst find no room', async () => {
  const { made, launch } = factory();
  const hasRoom = async () => {
    await pause(10);
    return false;
  };
  const stock = { engine: 'headless-shell', count: 4, hasRoom } as const;
  const chromes = openChromePool({ launch, spares: [stock], sparesMax: 9, max: 9, log });
  await until(() => made.length === 4, 'all four');
  const burst = await Promise.all([1, 2, 3, 4, 5, 6].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => alive(made) === 4, 'the usual stock, which waits to grow');
  for (const chrome of [await chromes.take({}, never), await chromes.take({}, never)])
    await chrome.close();
  await until(() => made.length === 12 && alive(made) === 4, 'the usual stock again');
  await chromes.close();
});

pool('a runner that drains keeps no spare of a burst, nor starts one', async () => {
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  let asked = 0;
  const hasRoom = async () => {
    asked += 1;
    await gate;
    return true;
  };
  const { made, chromes, burst } = await bursting({ hasRoom });
  await burst(3);
  await until(() => asked === 1 && alive(made) === 1, 'a spare that waits for room');
  chromes.retire();
  assert.is(alive(made), 0);
  go();
  await burst(1);
  assert.is(alive(made), 0);
  await chromes.close();
});

pool('a pool that closes during its first start starts no other', async () => {
  const { made, launch } = factory();
  const { promise: gate, resolve: go } = Promise.withResolvers<void>();
  const chromes = openChromePool({
    launch: async (wanted) => {
      await gate;
      return launch(wanted);
    },
    spares: [
      { engine: 'headless-shell', count: 1 },
      { engine: 'chromium', count: 1 },
    ],
    max: 9,
    log,
  });
  const closed = chromes.close();
  go();
  await closed;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal([made.length, alive(made), chromes.counts().up], [1, 0, 0]);
});

pool('a take that meets the end of the pool is rejected', async () => {
  const { launch } = factory();
  const spares = [{ engine: 'headless-shell', count: 0 } as const];
  const chromes = openChromePool({ launch, spares, max: 1, log });
  const taken = chromes.take({}, never).catch(String);
  await chromes.close();
  assert.match(String(await taken), /closed/);
});

pool('a session with a profile gets a Chrome of its own', async () => {
  const { made, launch } = factory();
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 1 }],
    max: 2,
    log,
  });
  await until(() => made.length === 1, 'a spare');
  const taken = await chromes.take({ profileDir: '/profile' }, never);
  assert.is((taken as Made).profileDir, '/profile');
  assert.is(made[0]?.isGone, false);
  await chromes.close();
});

pool('with all places taken, the next session waits for a release or its signal', async () => {
  const { launch } = factory();
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 0 }],
    max: 1,
    log,
  });
  const first = await chromes.take({}, never);
  const impatient = new AbortController();
  const gaveUp = chromes.take({}, impatient.signal).catch(String);
  const second = chromes.take({}, never);
  impatient.abort(new Error('gave up'));
  assert.match(String(await gaveUp), /gave up/);
  await first.close();
  assert.is((await second).id, '1');
  await chromes.close();
});

pool('a dead spare is replaced', async () => {
  const { made, launch } = factory();
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 1 }],
    max: 1,
    log,
  });
  await until(() => made.length === 1, 'a spare');
  made[0]?.die();
  await Promise.resolve(); // a tick: from now on it must not be taken
  assert.is((await chromes.take({}, never)).id, '1');
  await until(() => made.length === 3, 'another spare');
  await chromes.close();
});

pool('spares that die as soon as they are ready are not started without end', async () => {
  const { made, launch } = factory(undefined, () => false);
  const slow = async (wanted: TakeOptions): Promise<Chrome> => {
    await pause(5);
    return launch(wanted);
  };
  const spares = [{ engine: 'headless-shell', count: 2 } as const];
  const chromes = openChromePool({ launch: slow, spares, max: 9, log });
  await pause(2_500);
  assert.ok(made.length <= 6, `${made.length} starts`);
  await until(() => made.length > 2, 'it is tried again');
  await chromes.close();
});

pool('a failed start releases its place and is not retried at once', async () => {
  let tries = 0;
  let isBroken = true;
  const { launch } = factory(() => {
    tries += 1;
    return isBroken;
  });
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 1 }],
    max: 1,
    log,
  });
  assert.match(String(await chromes.take({}, never).catch(String)), /cannot start/);
  assert.is(tries, 2, 'that of the spare, which had begun before, and one for the session');
  isBroken = false;
  await chromes.take({}, never);
  await chromes.close();
});

pool('a start that began before a session and fails does not fail the session', async () => {
  const { launch } = factory();
  const gates: PromiseWithResolvers<void>[] = [];
  const gated = async (options: TakeOptions): Promise<Chrome> => {
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    await gate.promise;
    return launch(options);
  };
  const spares = [{ engine: 'headless-shell', count: 1 } as const];
  const chromes = openChromePool({ launch: gated, spares, max: 3, log });
  const taken = chromes.take({}, never);
  gates[0]?.reject(new Error('killed'));
  await until(() => gates.length === 2, 'a start for the session');
  gates[1]?.resolve();
  assert.is((await taken).id, '0');
  await chromes.close();
});

pool('the first Chrome that is ready is assigned to the longest waiting session', async () => {
  const { made, launch } = factory();
  const gates: (() => void)[] = [];
  const gated = async (options: TakeOptions): Promise<Chrome> => {
    await new Promise<void>((resolve) => gates.push(resolve));
    return launch(options);
  };
  const chromes = openChromePool({
    launch: gated,
    spares: [{ engine: 'headless-shell', count: 1 }],
    max: 3,
    log,
  });
  assert.is(gates.length, 1, 'the spare is on its way');
  const first = chromes.take({}, never);
  const impatient = new AbortController();
  const second = chromes.take({}, impatient.signal).catch(String);
  const third = chromes.take({}, impatient.signal).catch(String);
  await until(() => gates.length === 3, 'one start for each taker, with that of the spare');
  gates[2]?.();
  assert.is((await first).id, '0');
  impatient.abort(new Error('gave up'));
  assert.match(String(await second), /gave up/);
  assert.match(String(await third), /gave up/);
  gates[0]?.();
  gates[1]?.();
  await until(
    () => made.length === 3 && made.filter(({ isGone }) => isGone).length === 1,
    'kept 1',
  );
  assert.is(gates.length, 3);
  await chromes.close();
  assert.ok(made.every(({ isGone }) => isGone));
});

pool('a closed pool assigns no Chrome', async () => {
  const { made, launch } = factory();
  const chromes = openChromePool({
    launch,
    spares: [{ engine: 'headless-shell', count: 0 }],
    max: 1,
    log,
  });
  await chromes.close();
  assert.match(String(await chromes.take({}, never).catch(String)), /closed/);
  assert.is(made.length, 0);
});

pool('each engine has its own spares, and start options cause a new Chrome', async () => {
  const { made, launch } = factory();
  const wanted: TakeOptions[] = [];
  const chromes = openChromePool({
    launch: (options) => {
      wanted.push(options);
      return launch(options);
    },
    spares: [
      { engine: 'headless-shell', count: 1 },
      { engine: 'chromium', count: 1 },
    ],
    max: 9,
    log,
  });
  await until(() => made.length === 2, 'a spare of each');
  assert.equal(wanted[0], { engine: 'chromium' }, 'the last is the first to start');
  assert.is((await chromes.take({}, never)).id, '1');
  assert.is((await chromes.take({ engine: 'chromium' }, never)).id, '0');
  const own = { engine: 'chromium', ignoreCertificateErrors: true } as const;
  await chromes.take(own, never);
  assert.ok(wanted.includes(own));
  await chromes.close();
});

pool.run();
