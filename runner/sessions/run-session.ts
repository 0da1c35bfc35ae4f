/**
 * One leased session -> one end. Its Chrome is started, its key registered, core told that it runs;
 * it is held until lifetime.ts says how it ends. Then, whatever happened, its clients are told,
 * its parts and its Chrome end, its context is saved when somebody was there, and core is told
 * once.
 *
 * A session that never began is not told to core: it waits for another runner. A lost lease has no
 * end: core gave it one.
 */

import type { Log } from '../../proto/common/log.ts';
import { ended } from '../../proto/common/tracing.ts';
import type { SessionWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { onAbort } from '../common/abort.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import { patience, tellOutcome } from '../leases/report-outcome.ts';
import { retried } from '../leases/retry.ts';
import { type ComponentDeps, componentsOf } from './components.ts';
import { openContext } from './context.ts';
import { type End, type Lifetime, openLifetime, type SessionTimes } from './lifetime.ts';
import type { Recordings } from './recording/uploader.ts';
import type { SessionServer } from './server/session-server.ts';
import { type Chromes, openSession, type Session } from './session.ts';

export type SessionDeps = {
  clients: Pick<Clients, 'blobs' | 'runners'>;
  call: CallOptions;
  chromes: Chromes;
  engine: ComponentDeps['engine'];
  browsers: ComponentDeps['browsers'];
  server: Pick<SessionServer, 'register'>;
  /** Where contexts are unpacked. */
  runDir: string;
  /** Absent: nothing is recorded. */
  recordings?: Recordings;
  extensions?: ComponentDeps['extensions'] | undefined;
  log: Log;
  now: () => number;
  times: SessionTimes;
  /** Settles when core knows that it came: nobody is let in sooner. */
  acknowledged: Promise<void>;
  /** Aborts when the lease is lost: stop, and tell nobody. */
  lost: AbortSignal;
  /** Aborts when its user wants it to end. */
  released: AbortSignal;
  /** Aborts when the runner takes no more work: its sessions end in good order. */
  ending: AbortSignal;
  /** Aborts when the runner has no time left. */
  stopped: AbortSignal;
};

type WorkDeps = SessionDeps & { leaseId: string };

type Ended = End & { proxyBytes: number };

/** No Chrome, a context that does not load, a part that does not open. */
const FAILED: End = { end: 'ERROR', reason: 'the browser could not be started', code: 1011 };

/** Resolves when nothing of it is left here and core knows, or does not want to; never rejects. */
export async function runSession(
  work: SessionWork,
  leaseId: string,
  given: SessionDeps,
): Promise<void> {
  const { clients, call } = given;
  const log = given.log.child({ sessionId: work.sessionId });
  const over = await run(work, { ...given, leaseId, log });
  await given.acknowledged; // what could not begin may have failed sooner
  if (over === undefined || given.lost.aborted) return;
  const { end, reason, proxyBytes } = over;
  log.info({ end, reason }, 'a session has ended');
  ended(end, end === 'ERROR');
  const request = { leaseId, end, reason, proxyBytes };
  await tellOutcome((options) => clients.runners.completeSession(request, options), {
    call,
    log,
    over: patience(given),
  });
}

/** Undefined when core shall not be told. */
async function run(work: SessionWork, deps: WorkDeps): Promise<Ended | undefined> {
  using life = openLifetime({ ...deps, keepAlive: work.keepAlive });
  let session: Session;
  try {
    [session] = await Promise.all([open(work, life, deps), deps.acknowledged]);
  } catch (error) {
    const isForAnother = deps.ending.aborted && !deps.released.aborted;
    return isForAnother ? undefined : { ...(await failure(error, life, deps)), proxyBytes: 0 };
  }
  const { lost } = session;
  using _watched = onAbort(lost, () => life.crashed((lost.reason as Error).message));
  let end: End | undefined;
  try {
    life.done.throwIfAborted(); // its lease was lost while its Chrome was prepared
    end = await hold(session, work, { ...deps, life });
  } catch (error) {
    end = await failure(error, life, deps);
  } finally {
    const { code, reason } = end ?? FAILED;
    const mayKeep = life.wasVisited && !deps.lost.aborted && !deps.stopped.aborted;
    await session.close(code, reason, mayKeep).finally(session.discard);
  }
  // what its connections have carried is counted by now
  return end && { ...end, proxyBytes: session.chrome.egress.bytes.managed };
}

async function open(work: SessionWork, life: Lifetime, deps: WorkDeps): Promise<Session> {
  const { context } = work;
  const { open: parts, wanted, warn } = componentsOf(work, deps);
  const lost = AbortSignal.any([deps.lost, deps.stopped]);
  const loadContext =
    context && ((signal: AbortSignal) => openContext(context, { ...deps, lost, warn }, signal));
  const relay = { idleMs: deps.times.idleMs, onClients: life.clients };
  return await openSession({ ...deps, loadContext, wanted, parts, relay }, life.done);
}

/** From when clients can come to its end. Rejects when core cannot be told that it runs. */
async function hold(
  session: Session,
  { signingKey, timeoutMs }: SessionWork,
  { life, server, clients, call, leaseId, now }: WorkDeps & { life: Lifetime },
): Promise<End | undefined> {
  const { view, startedAt: startMs } = session;
  const watched =
    view &&
    ((...upgrade: Parameters<typeof view>): void => {
      life.visited();
      view(...upgrade);
    });
  // before core knows that it runs: a client may be there the moment it does
  using _registered = server.register(signingKey, {
    ...session,
    ...(watched && { view: watched }),
  });
  const request = { leaseId, startMs };
  const options = { ...call, signal: life.done };
  const { accepted } = await retried(() => clients.runners.startSession(request, options));
  if (!accepted) return undefined;
  life.begin(startMs + timeoutMs - now());
  return await life.ended;
}

/** What kept it from beginning: its end came first, or it is our failure. */
async function failure(error: unknown, life: Lifetime, deps: WorkDeps): Promise<End> {
  if (life.done.aborted) return await life.ended;
  if (error instanceof UnsupportedSessionError) return { ...FAILED, reason: error.message };
  deps.log.error({ err: error }, 'a session could not start');
  return FAILED;
}
