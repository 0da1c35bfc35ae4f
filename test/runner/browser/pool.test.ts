/**
 * The pool hands out each Chrome once, keeps spares, and waits when all are taken. Chromes are
 * counted, not started.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Chrome } from '../../../runner/browser/launch.ts';
import { openChromePool, type TakeOptions } from '../../../runner/browser/pool.ts';
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

/** Takes a Chrome and ends it, as often as asked, and returns the ids. */
async function takenInARow(chromes: ReturnType<typeof openChromePool>, count: number) {
  const ids: string[] = [];
  while (ids.length < count) {
    const chrome = await chromes.take({}, never);
    ids.push(chrome.id);
    await chrome.close();
  }
  return ids;
}

const alive = (made: readonly Made[]) => made.filter(({ isGone }) => !isGone).length;

pool('sessions that found no spare make the stock larger, up to its most', async () => {
  const { made, launch } = factory();
  const stock = { engine: 'headless-shell', count: 1, most: 4, room: async () => {} } as const;
  const chromes = openChromePool({ launch, spares: [stock], max: 9, log });
  await until(() => made.length === 1, 'a spare');
  const first = [chromes.take({}, never), chromes.take({}, never), chromes.take({}, never)];
  for (const chrome of await Promise.all(first)) await chrome.close();
  await until(() => alive(made) === 3, 'one more for each of the two that waited');
  const second = Array.from({ length: 6 }, () => chromes.take({}, never));
  for (const chrome of await Promise.all(second)) await chrome.close();
  await until(() => alive(made) === 4, 'the most');
  const count = made.length;
  const ready = made.filter(({ isGone }) => !isGone).map(({ id }) => id);
  assert.equal(await takenInARow(chromes, 4), ready, 'nobody waits for a start');
  await until(() => alive(made) === 4 && made.length === count + 4, 'the most again');
  await chromes.close();
  assert.is(alive(made), 0);
});

pool('a spare of a burst starts when the processors have room, and no session waits', async () => {
  const { made, launch } = factory();
  const asked: PromiseWithResolvers<void>[] = [];
  const room = async () => {
    const one = Promise.withResolvers<void>();
    asked.push(one);
    await one.promise;
  };
  const stock = { engine: 'headless-shell', count: 1, most: 4, room } as const;
  const chromes = openChromePool({ launch, spares: [stock], max: 9, log });
  await until(() => made.length === 1, 'a spare');
  for (const one of [chromes.take({}, never), chromes.take({}, never)]) await (await one).close();
  await until(() => asked.length === 1 && alive(made) === 1, 'the usual spare needs no room');
  asked[0]?.resolve();
  await until(() => alive(made) === 2, 'a spare of the burst');
  await chromes.close();
});

pool('a burst is over when nobody has needed its spares for a while', async () => {
  const { made, launch } = factory();
  const ready = async () => {};
  const stock = { engine: 'headless-shell', count: 1, most: 9, room: ready, burstKeptMs: 2_000 };
  const chromes = openChromePool({
    launch,
    spares: [{ ...stock, engine: 'chromium' }],
    max: 9,
    log,
  });
  await until(() => made.length === 1, 'a spare');
  const burst = await Promise.all([1, 2, 3].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => alive(made) === 3, 'the stock of the burst');
  await until(() => alive(made) === 1, 'the usual stock');
  await chromes.close();
});

pool('a runner that drains keeps no spare of a burst, nor starts one', async () => {
  const { made, launch } = factory();
  const stock = { engine: 'headless-shell', count: 1, most: 4, room: async () => {} } as const;
  const chromes = openChromePool({ launch, spares: [stock], max: 9, log });
  await until(() => made.length === 1, 'a spare');
  const burst = await Promise.all([1, 2, 3].map(() => chromes.take({}, never)));
  for (const chrome of burst) await chrome.close();
  await until(() => alive(made) === 3, 'the stock of the burst');
  chromes.retire();
  assert.is(alive(made), 0);
  const last = await chromes.take({}, never);
  await last.close();
  assert.is(alive(made), 0);
  await chromes.close();
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
  assert.is(tries, 1, 'the start of the spare was the one that it waited for');
  isBroken = false;
  await chromes.take({}, never);
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
