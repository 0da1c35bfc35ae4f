/**
 * The pool of key pairs: keeps sealed pairs in the database, so that creating a context need not
 * wait for one. full -> (a pair is taken) -> filling -> full. A thread fills the pool and ends
 * afterwards. It pauses after each pair while no call waits, so that it uses only part of one core.
 * The start does not wait for it.
 */
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { type FairQueue, openFairQueue } from '../../proto/sharing/fair-queue.ts';
import { openShares, type Shares } from '../../proto/sharing/shares.ts';
import { newId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Store } from '../store/types.ts';
import { type KeyGenerator, openKeyGenerator } from './key-generator.ts';

/** Size of the pool: a pair takes 38 ms of CPU with 2048 bits, at most 3 to 4 times that. */
const READY_TARGET = 16;
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

export type KeyPool = AsyncDisposable & {
  /** Call after taking a pair: refills the pool. */
  taken(): void;
  /** Whether calls wait: later calls must wait too, or would take their pair. */
  readonly isAwaited: boolean;
  /**
   * Resolves when a pair was added for this call; projects take turns. Throws KEYS_NOT_READY
   * shortly before the call's deadline, or when too many calls of the project wait.
   */
  wait(projectId: string, call: Call): Promise<void>;
};

type Options = {
  store: Pick<Store, 'addKeyPair' | 'countKeyPairs'>;
  sealer: Sealer;
  log: Log;
  now: () => number;
  readyTarget?: number;
  pauseMs?: number;
};

/**
 * The associated data of a pair's private key; it stays the same when a context takes the pair.
 */
export function privateKeyData(keyPairId: string): string {
  return `key_pairs/${keyPairId}`;
}

/** Opens the pool and starts filling it. */
export function openKeyPool(options: Options): KeyPool {
  const { store, log, readyTarget = READY_TARGET, pauseMs = PAUSE_MS } = options;
  const closing = new AbortController();
  const waiters = openFairQueue<() => void>();
  const places = openShares(WAITERS_MAX);
  let filling: Promise<void> | undefined;
  let wakePause = new AbortController();

  /** Stores one pair; the next waiting call tries again. */
  async function addOne(generator: KeyGenerator): Promise<number> {
    const count = await store.addKeyPair(await sealedPair(generator, options));
    waiters.shift()?.item();
    return count;
  }

  async function rest(ms: number): Promise<void> {
    wakePause = new AbortController();
    await pause(ms, AbortSignal.any([closing.signal, wakePause.signal]));
  }

  async function fill(): Promise<void> {
    if ((await store.countKeyPairs()) >= readyTarget && waiters.size === 0) return;
    await using generator = openKeyGenerator();
    while (!closing.signal.aborted) {
      const count = await addOne(generator);
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
        await rest(FAILED_PAUSE_MS);
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
    taken: start,
    get isAwaited() {
      return waiters.size > 0;
    },
    async wait(projectId, call) {
      const ms = Math.floor(call.deadline - performance.now()) - ANSWER_MARGIN_MS;
      if (ms <= 0 || closing.signal.aborted) throw notReady();
      using _ = placeOf(places, projectId);
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

async function sealedPair(generator: KeyGenerator, { sealer, now }: Options) {
  const { publicKey, privateKey } = await generator.generate();
  const id = newId();
  const sealed = sealer.seal(privateKey, privateKeyData(id));
  privateKey.fill(0);
  return { id, publicKey, privateKey: sealed, at: now() };
}

/** A place in the queue. Throws KEYS_NOT_READY beyond the project's share. */
function placeOf(places: Shares, projectId: string): Disposable {
  if (!places.acquire(projectId, 1)) throw notReady();
  return { [Symbol.dispose]: () => places.release(projectId, 1) };
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
