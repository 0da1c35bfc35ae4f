/**
 * Leases work of one kind and starts it: a long poll as wide as there are free places, again and
 * again until told to stop. Core unreachable: it keeps trying, with a growing pause. A superseded
 * instance leases nothing more, for good.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { HeldLease, Leases } from './leases.ts';
import { isSuperseded } from './renewals.ts';
import { inSpan } from './tracing.ts';

/** Source: LeaseWorkRequest.wait_ms. */
const WAIT_MS = 25_000;
/** Ours: the answer's own way, beyond the wait. */
const ANSWER_MS = 10_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;

export type LoopOptions = {
  kind: 'INVOCATION' | 'BUILD' | 'SESSION';
  /** Places. */
  max: number;
  clients: Pick<Clients, 'runners'>;
  call: CallOptions;
  runner: { runnerId: string; instanceId: string };
  leases: Leases;
  /**
   * Told of a piece of work before core hears that it is taken: from then on users may come for it.
   * Disposed when the work is over, or was not taken.
   */
  announce?: (work: Work) => Disposable | undefined;
  /**
   * Does one piece of work; never rejects for a reason of the work. `call` is how it calls core.
   */
  run(work: Work, given: HeldLease & { call: CallOptions }): Promise<void>;
  log: Log;
  /** A newer instance of this runner has registered: nothing more is leased. */
  onSuperseded(): void;
  /** Aborts when nothing more shall be leased. */
  signal: AbortSignal;
};

/** Resolves when it leases no more and the last piece of work has ended. */
export async function workLoop(options: LoopOptions): Promise<void> {
  const { kind, max, leases, log, signal } = options;
  const running = new Set<Promise<void>>();
  let pauseMs = PAUSE_MIN_MS;
  while (!signal.aborted) {
    if (running.size >= max) {
      await Promise.race(running);
      continue;
    }
    try {
      for (const leased of await lease(options, max - running.size)) {
        const started = start(leased, options).finally(() => running.delete(started));
        running.add(started);
      }
      pauseMs = PAUSE_MIN_MS;
    } catch (error) {
      if (signal.aborted) break;
      if (isSuperseded(error)) {
        options.onSuperseded();
        break;
      }
      log.warn({ kind, error: String(error) }, 'cannot lease work');
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
    }
  }
  log.debug({ kind, held: leases.held() }, 'leases no more');
  await Promise.all(running);
}

type Leased = { work: Work; announced: Disposable | undefined; held: Disposable & HeldLease };

async function lease(options: LoopOptions, max: number): Promise<Leased[]> {
  const { clients, call, runner, leases, kind, signal, announce } = options;
  const { work } = await clients.runners.leaseWork(
    { ...runner, kind, max, places: options.max, waitMs: WAIT_MS },
    { ...call, signal, timeoutMs: WAIT_MS + ANSWER_MS },
  );
  if (work.length === 0) return [];
  const offered = work.map((one) => {
    return { work: one, announced: announce?.(one), held: leases.hold(one.leaseId) };
  });
  leases.acknowledge(work.map(({ leaseId }) => leaseId));
  return offered;
}

async function start(
  { work, announced, held }: Leased,
  { run, log, call }: LoopOptions,
): Promise<void> {
  using _announced = announced;
  using _held = held;
  try {
    await inSpan(work, call, (own) => run(work, { ...held, call: own }));
  } catch (error) {
    log.error({ err: error, leaseId: work.leaseId }, 'a piece of work failed here');
  }
}
