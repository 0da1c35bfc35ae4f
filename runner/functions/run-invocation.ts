/**
 * Runs one leased invocation and reports its outcome. Loads the bundle and opens a session while
 * core acknowledges the lease, then runs the handler. In any case it then closes the session (which
 * saves its context), sends the log, reports the outcome and ends Chrome.
 *
 * The outcome is the handler's value, no value, or a failure: WORKLOAD_ERROR (the handler failed,
 * its browser used too much memory, or a user cancelled it), TIMED_OUT (its time limit), or
 * INTERNAL_ERROR (no browser, no bundle, the browser was lost, the runner is ending). A lost lease
 * is not reported: core has already ended the invocation.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import { ended } from '../../proto/common/tracing.ts';
import type {
  CompleteInvocationRequest_Step,
  InvocationWork,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { recordSteps, step } from '../common/steps.ts';
import type { LogLine } from '../host/messages.ts';
import type { Lease } from '../leases/lease.ts';
import { componentsOf, type SessionResources } from '../sessions/components.ts';
import { openContext } from '../sessions/context.ts';
import { openSession, type Session } from '../sessions/session.ts';
import type { Bundles } from './bundle-cache.ts';
import type { Hosts } from './hosts.ts';
import { type InvocationLog, openInvocationLog } from './invocation-log.ts';
import {
  browserLossOf,
  COMPLETED,
  closeOf,
  codeOf,
  DONE,
  failureOf,
  type Outcome,
  outcomeOf,
  sessionEndOf,
} from './invocation-outcome.ts';

/**
 * Chrome ends after the report of the outcome, or after this time: its end occupies a small
 * machine for some milliseconds. Ours: core answers within two.
 */
const REPORT_MS = 100;

export type InvocationDeps = SessionResources & {
  bundles: Bundles;
  hosts: Pick<Hosts, 'invoke'>;
};

/** One invocation on its way to its outcome. */
type Run = { work: InvocationWork; lease: Lease; lines: InvocationLog; deps: InvocationDeps };
/** How long the browser was waited for, the handler ran, the session took to close. */
type Laps = { chromeMs: number; runMs: number; closeMs: number };
type Ended = {
  outcome: Outcome;
  session: Session | undefined;
  laps: Laps;
  steps: CompleteInvocationRequest_Step[];
};

/** Resolves after cleanup and the report, or a lost lease. Rejects when the cleanup failed. */
export async function runInvocation(
  work: InvocationWork,
  lease: Lease,
  given: InvocationDeps,
): Promise<void> {
  const begun = performance.now();
  const { invocationId, sessionId } = work;
  const log = given.runner.log.child({ invocationId, sessionId });
  const deps = { ...given, runner: { ...given.runner, log } };
  const lines = openInvocationLog({ lease, id: work.invocationId, log });
  const { session, laps, ...end } = await recordSteps(async (taken) => {
    const done = await run({ work, lease, lines, deps });
    return { ...done, steps: taken() };
  });
  const reported = report({ ...end, session }, { lines, lease, log }).then(() => {
    log.debug({ ...laps, totalMs: performance.now() - begun }, 'invocation ended');
  });
  await Promise.race([Promise.allSettled([reported]), sleep(REPORT_MS)]);
  const both = [reported, session?.discard()];
  await Promise.allSettled(both); // a directory that cannot be removed must not end the report
  await Promise.all(both);
}

async function report(
  { outcome, session, steps }: Omit<Ended, 'laps'>,
  { lines, lease, log }: Pick<Run, 'lines' | 'lease'> & { log: Log },
): Promise<void> {
  await lease.acknowledged; // an invocation that could not start may have failed before
  const { lost } = lease;
  const code = lost.aborted ? 'LEASE_LOST' : codeOf(outcome);
  ended(code, code !== COMPLETED);
  {
    using deadline = lease.reportDeadline();
    await lines.flush(deadline.signal);
  }
  const browserLoss = browserLossOf(session);
  if (!lost.aborted) logEnd(log, sessionEndOf(outcome, browserLoss));
  const sessionStartMs = session?.startedAt ?? 0;
  await lease.complete({ kind: 'INVOCATION', outcome, sessionStartMs, steps, browserLoss });
}

/** Most sessions of invocations end as they should: that is no news. */
function logEnd(log: Log, { status: end, reason }: ReturnType<typeof sessionEndOf>): void {
  const level = end === 'COMPLETED' ? 'debug' : 'info';
  log[level]({ end, reason }, 'a session has ended');
}

async function run({ work, lease, lines, deps }: Run): Promise<Omit<Ended, 'steps'>> {
  const { runner, chromes, sessionServer } = deps;
  const { deadline, signal, release } = openDeadline(work.timeoutMs, lease, runner.stopped);
  const causes = { released: lease.released, deadline };
  const laps: Laps = { chromeMs: 0, runMs: 0, closeMs: 0 };
  const lap = stopwatch();
  let session: Session | undefined;
  let outcome: Outcome;
  let hasBegun = false; // a context that no handler has used is not saved
  // nor that of a session that outlived its runner's time
  const mayKeep = (): boolean => hasBegun && !runner.stopped.aborted;
  const loadContext = contextOf({ work, lease, lines, deps });
  using handoffs = deps.handoffs.ofLease(lease);
  const { components, chromeOptions } = componentsOf(work, lease, { ...deps, handoffs });
  const { log, now } = runner;
  const relay = { handoffs };
  const options = { chromes, log, now, loadContext, chromeOptions, components, relay };
  const opening = openSession(options, signal).then((opened) => {
    session = opened;
    laps.chromeMs = lap();
    return opened;
  });
  // at once, whatever the handler does: it drives nothing more, and no page runs on
  const end = (): void => {
    const { code, reason } = closeOf({ ...causes, lost: lease.lost });
    const closed = session?.close(code, reason, mayKeep());
    closed?.then(session?.discard).catch(() => undefined); // rejects below, too
  };
  signal.addEventListener('abort', end);
  try {
    const { bundleBlobId: blobId, bundleSha256: sha256 } = work;
    const bundle = step('bundle', () => deps.bundles.get({ blobId, sha256 }, signal));
    const [opened, found] = await Promise.all([opening, bundle, lease.acknowledged]);
    signal.throwIfAborted();
    using _registered = sessionServer.register(work.signingKey, opened);
    const onLines = (printed: readonly LogLine[]): void => lines.add(printed);
    const request = { ...work, bundle: found, relay: opened.relay, onLines, signal };
    hasBegun = true;
    const result = await step('handler', () => deps.hosts.invoke(request));
    outcome = outcomeOf(result, opened, causes);
  } catch (error) {
    outcome = failureOf(error, { ...causes, log, signal });
  } finally {
    laps.runMs = lap();
    await opening.then(
      (opened) => opened.close(DONE.code, DONE.reason, mayKeep()),
      () => {}, // there is no session; the cause is an outcome already
    );
    signal.removeEventListener('abort', end);
    release();
    laps.closeMs = lap();
  }
  return { outcome, session, laps };
}

/**
 * A timer that ends with the run: AbortSignal.timeout would keep its listeners, the session and its
 * Chrome in memory until the time is over.
 */
function openDeadline(timeoutMs: number, { lost, released }: Lease, stopped: AbortSignal) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const deadline = late.signal;
  const signal = AbortSignal.any([lost, released, stopped, deadline]);
  return { deadline, signal, release: () => clearTimeout(timer) };
}

/** Milliseconds since its last call. */
function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const before = last;
    last = performance.now();
    return last - before;
  };
}

function contextOf({ work: { context }, lease, lines, deps }: Run) {
  if (context === undefined) return undefined;
  const { runner } = deps;
  const warn = (message: string): void =>
    lines.add([{ level: 'warn', message, timestamp: runner.now() }]);
  return (signal: AbortSignal) => openContext(context, { runner, lease, warn }, signal);
}
