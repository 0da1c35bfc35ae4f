/**
 * The pool of key pairs: keeps sealed pairs in the database, so that creating a context need not
 * wait for one. full -> (a pair is taken) -> filling -> full. A thread fills the pool and ends
 * afterwards. It pauses after each pair while no call waits, so that it uses only part of one core.
 * The start does not wait for it.
 */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { type FairQueue, openFairQueue } from '../../proto/sharing/fair-queue.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import { newId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Store } from '../store/types.ts';
import type { KeyPair } from './key-thread.ts';

/**
 * In milliseconds, after each pair while no call waits. Ours: about a third of a core while the
 * pool fills.
 */
const PAUSE_MS = 300;
/** In milliseconds. Ours: the pause after a failed thread. */
const FAILED_PAUSE_MS = 1_000;
/**
 * Ours: about 7 pairs are generated per second and a call waits 30 s at most, so more calls would
 * wait in vain. In shares by project.
 */
const WAITERS_MAX = 200;
/** In milliseconds. The answer is sent before the call's own deadline. */
const ANSWER_MARGIN_MS = 250;

export type KeyPool = ReturnType<typeof openKeyPool>;

type Generator = Piscina<void, KeyPair>;

type Options = {
  store: Pick<Store, 'addKeyPair' | 'countKeyPairs'>;
  sealer: Sealer;
  log: Log;
  now: () => number;
  /** Size of the pool: a pair takes 140 ms of CPU time. */
  readyTarget: number;
  pauseMs?: number;
};

/**
 * The associated data of a pair's private key; it stays the same when a context takes the pair.
 */
export function privateKeyData(keyPairId: string): string {
  return `key_pairs/${keyPairId}`;
}

/** Opens the pool and starts filling it. */
export function openKeyPool(options: Options) {
  const { store, log, readyTarget, pauseMs = PAUSE_MS } = options;
  const closing = new AbortController();
  const waiters = openFairQueue<() => void>();
  const places = openShares(WAITERS_MAX);
  let filling: Promise<void> | undefined;
  let wakePause = new AbortController();

  async function rest(ms: number): Promise<void> {
    wakePause = new AbortController();
    await pause(ms, AbortSignal.any([closing.signal, wakePause.signal]));
  }

  function wakeAll(): void {
    for (let one = waiters.shift(); one; one = waiters.shift()) one.item();
  }

  async function fill(): Promise<void> {
    if ((await store.countKeyPairs()) >= readyTarget && waiters.size === 0) return;
    await using generator = openGenerator();
    while (!closing.signal.aborted) {
      const count = await store.addKeyPair(await sealedPair(generator, options));
      waiters.shift()?.item(); // the call tries again
      if (waiters.size > 0) continue;
      if (count >= readyTarget) return;
      await rest(pauseMs);
    }
  }

  async function fillUntilFull(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        return await fill();
      } catch (error) {
        if (closing.signal.aborted) return;
        log.error({ err: error }, 'generating a key pair failed; retrying');
        wakeAll(); // a store that cannot be reached answers for itself
        await pause(FAILED_PAUSE_MS, closing.signal); // whole: woken calls may wait again
      }
    }
  }

  /** At most one filler runs; pairs taken meanwhile are counted again when it ends. */
  function start(): void {
    if (filling || closing.signal.aborted) return;
    filling = fillUntilFull().finally(() => {
      filling = undefined;
      if (waiters.size > 0) start();
    });
  }

  start();
  return {
    /** Call after taking a pair: refills the pool. */
    taken: start,
    /** Whether calls wait: later calls must wait too, or would take their pair. */
    get isAwaited(): boolean {
      return waiters.size > 0;
    },
    /**
     * Resolves when a pair was added for this call; projects take turns. Throws KEYS_NOT_READY
     * shortly before the call's deadline, or when too many calls of the project wait.
     */
    async wait(projectId: string, call: Call): Promise<void> {
      const ms = Math.floor(call.deadline - performance.now()) - ANSWER_MARGIN_MS;
      if (ms <= 0 || closing.signal.aborted || !places.acquire(projectId, 1)) throw notReady();
      using _ = { [Symbol.dispose]: () => places.release(projectId, 1) };
      const over = AbortSignal.any([call.signal, closing.signal, AbortSignal.timeout(ms)]);
      const added = addedBefore(over, waiters, projectId);
      start();
      wakePause.abort();
      await added;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await filling;
    },
  };
}

/** A thread that generates one pair at a time. Rejects when it ends before the pair is complete. */
function openGenerator(): Generator {
  return new Piscina({
    filename: fileURLToPath(new URL('./key-thread.ts', import.meta.url)),
    maxThreads: 1,
    atomics: 'disabled',
    recordTiming: false,
    env: moduleCacheEnv(),
    execArgv: [], // modules that were preloaded into the service are not for a thread
  });
}

async function sealedPair(generator: Generator, { sealer, now }: Options) {
  const { publicKey, privateKey } = await generator.run();
  const id = newId();
  const sealed = sealer.seal(privateKey, privateKeyData(id));
  privateKey.fill(0);
  return { id, publicKey, privateKey: sealed, at: now() };
}

/** Resolves at the turn of the call; throws KEYS_NOT_READY when the signal aborts first. */
async function addedBefore(
  over: AbortSignal,
  waiters: FairQueue<() => void>,
  projectId: string,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const end = () => void (waiters.remove(projectId, resolve) && reject(notReady()));
  waiters.push(projectId, resolve);
  over.addEventListener('abort', end, { once: true });
  if (over.aborted) end();
  await promise.finally(() => over.removeEventListener('abort', end));
}

function notReady(): Fault {
  return new Fault('KEYS_NOT_READY', 'No encryption key is ready yet. Retry the request.');
}
