/**
 * Leases work of one kind and starts it: long polls for as much work as there are free places,
 * until the runner ends. While core cannot be reached, the polls are retried with a growing pause.
 * A superseded instance leases no more work.
 */
import { retry } from '../../proto/common/retry.ts';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import { type Lease, openLease } from './lease.ts';
import type { HeldLease, Leases } from './leases.ts';
import { isSuperseded } from './renewals.ts';
import { inSpan } from './tracing.ts';

/** Source: LeaseWorkRequest.wait_ms. */
const WAIT_MS = 25_000;
/** Ours: the answer's own way, beyond the wait. */
const ANSWER_MS = 10_000;
const PAUSES = { firstMs: 100, maxMs: 2_000 };

export type LoopOptions = {
  kind: 'INVOCATION' | 'BUILD' | 'SESSION';
  /** Places. */
  max: number;
  runner: Pick<RunnerContext, 'identity' | 'call' | 'log' | 'ending' | 'stopped'> & {
    clients: Pick<RunnerContext['clients'], 'runners'>;
  };
  leases: Leases;
  /**
   * Called before the lease is acknowledged. Clients may connect from then on. The result is
   * disposed of when the work has ended or its lease was lost.
   */
  announce?: (work: Work) => Disposable | undefined;
  /** Runs one piece of work under its lease. Never rejects for a reason of the work. */
  run(work: Work, lease: Lease): Promise<void>;
  /** A newer instance of this runner has registered. */
  onSuperseded(): void;
};

/** Resolves when it leases no more work and all work has ended. */
export async function workLoop(options: LoopOptions): Promise<void> {
  const { kind, max, leases, onSuperseded } = options;
  const { log, ending: signal } = options.runner;
  const running = new Set<Promise<void>>();
  const isRetryable = (error: unknown) => !isSuperseded(error);
  const onRetry = (error: unknown) => log.warn({ kind, error: String(error) }, 'cannot lease work');
  while (!signal.aborted) {
    if (running.size >= max) {
      await Promise.race(running);
      continue;
    }
    try {
      const attempt = () => leaseWork(options, max - running.size);
      for (const leased of await retry(attempt, { ...PAUSES, signal, isRetryable, onRetry })) {
        const started = start(leased, options).finally(() => running.delete(started));
        running.add(started);
      }
    } catch (error) {
      if (signal.aborted) break;
      if (!isSuperseded(error)) throw error;
      onSuperseded();
      break;
    }
  }
  log.debug({ kind, held: leases.held() }, 'leasing has ended');
  await Promise.all(running);
}

type Leased = { work: Work; announced: Disposable | undefined; held: HeldLease };

async function leaseWork(options: LoopOptions, max: number): Promise<Leased[]> {
  const { runner, leases, kind, announce } = options;
  const { clients, call, identity, ending: signal } = runner;
  const request = { ...identity, kind, max, places: options.max, waitMs: WAIT_MS };
  const within = { ...call, signal, timeoutMs: WAIT_MS + ANSWER_MS };
  const { work } = await clients.runners.leaseWork(request, within);
  if (work.length === 0) return [];
  const leased = work.map((one) => {
    return { work: one, announced: announce?.(one), held: leases.hold(one.leaseId) };
  });
  leases.acknowledge(work.map(({ leaseId }) => leaseId));
  return leased;
}

async function start(
  { work, announced, held }: Leased,
  { run, runner }: LoopOptions,
): Promise<void> {
  using _announced = announced;
  using _held = held;
  try {
    await inSpan(work, runner.call, (call) => run(work, openLease(held, { ...runner, call })));
  } catch (error) {
    runner.log.error({ err: error, leaseId: work.leaseId }, 'a piece of work failed');
  }
}
