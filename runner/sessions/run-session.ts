/**
 * Runs one leased session and reports its end. Starts the session's Chrome, registers it at the
 * session server and reports that it runs. When lifetime.ts ends the session: closes the clients,
 * the components (components.ts) and Chrome, saves the context if a client has connected, and
 * reports the reason.
 *
 * Two cases are not reported. A session that has not started when the runner ends is leased by
 * another runner. A session whose lease was lost has been ended by core.
 */
import { ended } from '../../proto/common/tracing.ts';
import type { SessionWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { END_REASONS } from '../../proto/sessions/end-reasons.ts';
import { onAbort } from '../common/abort.ts';
import { retryCall } from '../common/core-calls.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Lease } from '../leases/lease.ts';
import { componentsOf, type SessionResources } from './components.ts';
import { openContext } from './context.ts';
import type { SessionHandoffs } from './handoffs.ts';
import { type End, type Lifetime, openLifetime, type SessionTimes } from './lifetime.ts';
import { openSession, type ServeView, type Session } from './session.ts';

export type SessionDeps = SessionResources & { times: SessionTimes };

/** One session on its way to its end. */
type Run = {
  work: SessionWork;
  lease: Lease;
  deps: SessionDeps;
  lifetime: Lifetime;
  handoffs: SessionHandoffs;
};
type Ended = End & { proxyBytes: number };

/** No Chrome, a context that does not load, a component that does not open. */
const FAILED: End = { end: 'ERROR', reason: END_REASONS.browserFailed, code: 1011 };

/** Resolves after cleanup and after the end was reported (or the lease was lost). Never rejects. */
export async function runSession(
  work: SessionWork,
  lease: Lease,
  given: SessionDeps,
): Promise<void> {
  const log = given.runner.log.child({ sessionId: work.sessionId });
  const deps = { ...given, runner: { ...given.runner, log } };
  const outcome = await run(work, lease, deps);
  await lease.acknowledged; // a session that could not start may have failed before
  if (outcome === undefined || lease.lost.aborted) return;
  const { end, reason, proxyBytes } = outcome;
  log.info({ end, reason }, 'a session has ended');
  ended(end, end === 'ERROR');
  await lease.complete({ kind: 'SESSION', end, reason, proxyBytes });
}

/** Undefined when core must not receive an end. */
async function run(work: SessionWork, lease: Lease, deps: SessionDeps): Promise<Ended | undefined> {
  const { ending, stopped } = deps.runner;
  const { lost, released } = lease;
  const signals = { lost, released, ending };
  using lifetime = openLifetime({ keepAlive: work.keepAlive, times: deps.times, signals });
  using handoffs = deps.handoffs.ofLease(lease);
  handoffs.onChange(() => lifetime.hold(handoffs.pending !== undefined));
  const running: Run = { work, lease, deps, lifetime, handoffs };
  let session: Session;
  try {
    [session] = await Promise.all([open(running), lease.acknowledged]);
  } catch (error) {
    const isForAnother = ending.aborted && !released.aborted;
    return isForAnother ? undefined : { ...(await failure(error, running)), proxyBytes: 0 };
  }
  const { lost: crashed } = session;
  using _watched = onAbort(crashed, () => lifetime.crashed((crashed.reason as Error).message));
  let end: End | undefined;
  try {
    lifetime.done.throwIfAborted(); // the lease was lost while Chrome was prepared
    end = await serve(session, running);
  } catch (error) {
    end = await failure(error, running);
  } finally {
    const { code, reason } = end ?? FAILED;
    const mayKeep = lifetime.wasVisited && !stopped.aborted;
    await session.close(code, reason, mayKeep).finally(session.discard);
  }
  // complete by now: all connections are closed
  return end && { ...end, proxyBytes: session.chrome.egress.bytes.managed };
}

async function open({ work, lease, deps, lifetime, handoffs }: Run): Promise<Session> {
  const { context } = work;
  const { runner, chromes, times } = deps;
  const { components, chromeOptions, warn } = componentsOf(work, lease, { ...deps, handoffs });
  const contextDeps = { runner, lease, warn };
  const loadContext =
    context && ((signal: AbortSignal) => openContext(context, contextDeps, signal));
  const { idleMs, resumeMs } = times;
  const relay = { idleMs, resumeMs, onClients: lifetime.clients, handoffs };
  const options = { ...runner, chromes, loadContext, chromeOptions, components, relay };
  return await openSession(options, lifetime.done);
}

/** From the first possible client to the end. Rejects when the start could not be reported. */
async function serve(session: Session, running: Run): Promise<End | undefined> {
  const { work, lease, deps, lifetime } = running;
  const { clients, now } = deps.runner;
  const { view, startedAt: startMs } = session;
  const watched: ServeView = (upgrade) => {
    lifetime.visited();
    view?.(upgrade);
  };
  // before the start is reported: a client may connect at once
  const served = { ...session, view: view && watched };
  using _registered = deps.sessionServer.register(work.signingKey, served);
  const request = { leaseId: lease.id, startMs };
  const options = { ...lease.call, signal: lifetime.done };
  const { accepted } = await retryCall(
    () => clients.runners.startSession(request, options),
    options.signal,
  );
  if (!accepted) return undefined;
  lifetime.begin(startMs + work.timeoutMs - now());
  return await lifetime.ended;
}

/** The reason of a failed start: an earlier end, or an error. */
async function failure(error: unknown, { lifetime, deps }: Run): Promise<End> {
  if (lifetime.done.aborted) return await lifetime.ended;
  if (error instanceof UnsupportedSessionError) return { ...FAILED, reason: error.message };
  deps.runner.log.error({ err: error }, 'a session could not start');
  return FAILED;
}
