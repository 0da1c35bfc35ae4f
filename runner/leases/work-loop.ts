/**
 * Leases work of one kind and starts it: long polls for as much work as there are free places,
 * until the runner drains. The last poll is not aborted: core ends it when it knows of the drain,
 * and work that it leased before runs. A superseded instance leases no more work. Each piece of
 * work has a span, below the request that created it; the runner's calls for the work are below
 * that span.
 */
import { traced } from '../../proto/common/tracing.ts';
import type { Work } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { abortAfter } from '../common/abort.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import { type Lease, openLease } from './lease.ts';
import type { HeldLease, Leases } from './leases.ts';
import { follow, WAIT_MS } from './long-poll.ts';

/** Ours: core answers at once; a core that cannot be reached must not delay the end of a drain. */
const LAST_POLL_MS = 2_000;

export type LoopOptions = {
  kind: 'INVOCATION' | 'BUILD' | 'SESSION';
  /** Places. */
  max: number;
  runner: RunnerContext;
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
  const { call, log, draining, ending } = options.runner;
  using late = abortAfter(draining, LAST_POLL_MS);
  const signal = AbortSignal.any([ending, late.signal]);
  const running = new Set<Promise<void>>();
  const following = { call, log: log.child({ kind }), signal, last: draining };
  await follow('work', following, async (within) => {
    while (running.size >= max) await Promise.race(running);
    if (signal.aborted || draining.aborted) return;
    const all = await leaseWork(options, max - running.size, within);
    for (const leased of all) {
      const started = start(leased, options).finally(() => running.delete(started));
      running.add(started);
    }
    // the next poll would come before the acknowledgement, for which this work waits
    await Promise.all(all.map(({ held }) => held.acknowledged));
  });
  if (!signal.aborted && !draining.aborted) onSuperseded();
  log.debug({ kind, held: leases.held() }, 'leasing has ended');
  await Promise.all(running);
}

type Leased = { work: Work; announced: Disposable | undefined; held: HeldLease };

async function leaseWork(
  { runner, leases, kind, max: places, announce }: LoopOptions,
  max: number,
  within: CallOptions,
): Promise<Leased[]> {
  const { clients, identity } = runner;
  const request = { ...identity, kind, max, places, waitMs: WAIT_MS };
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

/** Runs the work in its span; `run` receives the options for calls to core. */
function inSpan(
  { item, traceparent }: Work,
  call: CallOptions,
  run: (call: CallOptions) => Promise<void>,
): Promise<void> {
  const name = `runner ${item?.$case ?? 'nothing'}`;
  const span = { name, traceparent, kind: 'CONSUMER', attributes: idOf(item) } as const;
  return traced(span, ({ traceparent: own }) => {
    const metadata = own === undefined ? call.metadata : { ...call.metadata, traceparent: own };
    return run({ ...call, metadata });
  });
}

/** The id of the work's resource, which its log also contains. */
function idOf(item: Work['item']): Record<string, string> {
  switch (item?.$case) {
    case 'invocation':
      return { 'tabern.invocation.id': item.value.invocationId };
    case 'session':
      return { 'tabern.session.id': item.value.sessionId };
    case 'build':
      return { 'tabern.build.id': item.value.buildId };
    case undefined:
      return {};
  }
}
