/**
 * One leased invocation -> one outcome. Side by side the bundle and a session, while core hears
 * that it came; then the handler; then, whatever happened, the session is closed (which saves its
 * context), the log is sent, core is told once, and what is left of Chrome goes.
 *
 * value, none, WORKLOAD_ERROR (the handler's own failure, also when its browser was ended for the
 * memory that it took, or its user cancelled it), TIMED_OUT (its time was over), INTERNAL_ERROR (no
 * browser, the browser was lost and the handler failed by it, no bundle, the runner is ending). A
 * lost lease has no outcome: core ended it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import { ended, step } from '../../proto/common/tracing.ts';
import type { InvocationWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { LogLine } from '../host/messages.ts';
import { openRunLog, type RunLog } from '../leases/log-shipper.ts';
import { patience, tellOutcome } from '../leases/report-outcome.ts';
import { type ComponentDeps, componentsOf } from '../sessions/components.ts';
import { openContext } from '../sessions/context.ts';
import type { Recordings } from '../sessions/recording/uploader.ts';
import type { SessionServer } from '../sessions/server/session-server.ts';
import { type Chromes, openSession, type Session } from '../sessions/session.ts';
import type { Bundles } from './bundle-cache.ts';
import type { Hosts } from './hosts.ts';
import {
  COMPLETED,
  codeOf,
  endReason,
  failureOf,
  type Outcome,
  outcomeOf,
} from './invocation-outcome.ts';

/** WebSocket close codes; the meaning stands in the reason. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
/**
 * Chrome goes when core has been told, or after so long: its end takes all of a small machine for
 * some milliseconds. Ours: core takes two.
 */
const TOLD_MS = 100;

export type InvocationDeps = {
  clients: Pick<Clients, 'blobs' | 'runners'>;
  call: CallOptions;
  bundles: Bundles;
  chromes: Chromes;
  engine: ComponentDeps['engine'];
  browsers: ComponentDeps['browsers'];
  hosts: Pick<Hosts, 'invoke'>;
  server: Pick<SessionServer, 'register'>;
  /** Where contexts are unpacked. */
  runDir: string;
  /** Absent: nothing is recorded. */
  recordings?: Recordings;
  extensions?: ComponentDeps['extensions'] | undefined;
  log: Log;
  now: () => number;
  /** Settles when core knows that it came: a handler begins no sooner. */
  acknowledged: Promise<void>;
  /** Aborts when the lease is lost: stop, and tell nobody. */
  lost: AbortSignal;
  /** Aborts when its user wants it to end. */
  released: AbortSignal;
  /** Aborts when the runner ends before the work did. */
  stopped: AbortSignal;
};

/** How long the browser was waited for, the handler ran, the session took to close. */
type Laps = { chromeMs: number; runMs: number; closeMs: number };
type Ended = { outcome: Outcome; session: Session | undefined; laps: Laps };

/** Resolves when nothing of it is left here and core knows, or does not want to; never rejects. */
export async function runInvocation(
  work: InvocationWork,
  leaseId: string,
  deps: InvocationDeps,
): Promise<void> {
  const begun = performance.now();
  const log = deps.log.child({ invocationId: work.invocationId });
  const lines = openRunLog({ ...deps, leaseId, log });
  const { outcome, session, laps } = await run(work, lines, { ...deps, log, leaseId });
  const told = tell({ outcome, session }, lines, { ...deps, log, leaseId }).then(() => {
    log.debug({ ...laps, totalMs: performance.now() - begun }, 'invocation ended');
  });
  await Promise.race([Promise.allSettled([told]), sleep(TOLD_MS)]);
  const both = [told, session?.discard()];
  await Promise.allSettled(both); // what cannot be removed must not end the telling
  await Promise.all(both);
}

async function tell(
  { outcome, session }: Pick<Ended, 'outcome' | 'session'>,
  lines: RunLog,
  deps: RunDeps,
): Promise<void> {
  const { clients, call, leaseId, log, lost, acknowledged } = deps;
  await acknowledged; // what could not begin may have failed sooner
  const over = patience(deps);
  const code = lost.aborted ? 'LEASE_LOST' : codeOf(outcome);
  ended(code, code !== COMPLETED);
  await lines.flush(over);
  if (lost.aborted) return;
  const request = { leaseId, outcome, sessionStartMs: session?.startedAt ?? 0 };
  await tellOutcome((options) => clients.runners.completeInvocation(request, options), {
    call,
    log,
    over,
  });
}

type RunDeps = InvocationDeps & { leaseId: string };

async function run(work: InvocationWork, lines: RunLog, deps: RunDeps): Promise<Ended> {
  const { deadline, signal, release } = openDeadline(work.timeoutMs, deps);
  const laps: Laps = { chromeMs: 0, runMs: 0, closeMs: 0 };
  const lap = stopwatch();
  let session: Session | undefined;
  let outcome: Outcome;
  let hasBegun = false; // what no handler touched is not worth a save
  const loadContext = contextOf(work, lines, deps);
  const { open, wanted } = componentsOf(work, deps);
  const options = { ...deps, loadContext, wanted, parts: open };
  const opening = openSession(options, signal).then((opened) => {
    session = opened;
    laps.chromeMs = lap();
    return opened;
  });
  // at the deadline the session ends at once: the handler, whatever it does, drives nothing more,
  // and no page runs on
  const end = (): void => {
    const why = endReason({ ...deps, deadline });
    const closed = session?.close(GOING_AWAY, why, hasBegun && mayKeep(deps));
    closed?.then(session?.discard).catch(() => undefined); // heard by who ends the session below
  };
  signal.addEventListener('abort', end);
  try {
    const { bundleBlobId: blobId, bundleSha256: sha256 } = work;
    const bundle = step('bundle', () => deps.bundles.get({ blobId, sha256 }, signal));
    const [opened, found] = await Promise.all([opening, bundle, deps.acknowledged]);
    signal.throwIfAborted();
    using _registered = deps.server.register(work.signingKey, opened);
    const onLines = (printed: readonly LogLine[]): void => lines.add(printed);
    const asked = { ...work, bundle: found, relay: opened.relay, onLines, signal };
    hasBegun = true;
    const said = await step('handler', () => deps.hosts.invoke(asked));
    outcome = outcomeOf(said, opened, { ...deps, deadline });
  } catch (error) {
    outcome = failureOf(error, { ...deps, deadline, signal });
  } finally {
    laps.runMs = lap();
    await opening.then(
      (opened) => opened.close(NORMAL, 'the invocation has ended', hasBegun && mayKeep(deps)),
      () => {}, // there is no session; the cause is an outcome already
    );
    signal.removeEventListener('abort', end);
    release();
    laps.closeMs = lap();
  }
  return { outcome, session, laps };
}

/**
 * A timer of its own, ended with the run: what listens to AbortSignal.timeout is kept alive until
 * the time is over, and with it the session and its Chrome.
 */
function openDeadline(timeoutMs: number, { lost, released, stopped }: InvocationDeps) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const deadline = late.signal;
  const signal = AbortSignal.any([lost, released, stopped, deadline]);
  return { deadline, signal, release: () => clearTimeout(timer) };
}

/** Milliseconds since it was last asked. */
function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const before = last;
    last = performance.now();
    return last - before;
  };
}

/** A session that outlived its lease or its runner's time changes no context. */
function mayKeep({ lost, stopped }: InvocationDeps): boolean {
  return !lost.aborted && !stopped.aborted;
}

function contextOf({ context }: InvocationWork, lines: RunLog, deps: RunDeps) {
  if (context === undefined) return undefined;
  const warn = (message: string): void =>
    lines.add([{ level: 'warn', message, timestamp: deps.now() }]);
  return (signal: AbortSignal) => openContext(context, { ...deps, warn }, signal);
}
