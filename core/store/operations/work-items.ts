/**
 * Work items: a leased session, invocation or build as its runner receives it, with the rows that
 * the work needs (context, extension, bundle, params).
 */
import { must } from '../../../proto/common/must.ts';
import type { ContextContent } from '../types/contexts.ts';
import type { LeasedExtension } from '../types/files.ts';
import type {
  LeasedBuild,
  LeasedInvocation,
  LeasedSession,
  LeasedWork,
  Loaded,
} from '../types/leases.ts';
import { BUILD_TIMEOUT_MS } from './builds.ts';
import type { LeasedJob } from './queue.ts';
import { made, type Read, type Steps } from './steps.ts';

type Beside = 'kind' | 'leaseId' | keyof Loaded;

export type WorkItemStatements = {
  invocation(id: string): Read<Omit<LeasedInvocation, Beside> | undefined>;
  build(id: string): Read<Omit<LeasedBuild, Beside | 'timeoutMs'> | undefined>;
  session(id: string): Read<Omit<LeasedSession, Beside> | undefined>;
  /**
   * What the session's context holds, remembered as what the session starts from: that blob is kept
   * until the session has ended. Undefined when it has none, or a deleted one.
   */
  startContext(sessionId: string): Read<(ContextContent & { persist: boolean }) | undefined>;
  /** A deleted extension is loaded all the same. */
  extensionsOf(sessionId: string): Read<LeasedExtension[]>;
  /** In PEM. A deleted certificate is trusted all the same. */
  certificatesOf(sessionId: string): Read<string[]>;
};

/** What a runner receives with the lease of the job. Its statements are sent by the call. */
export function workItems(items: WorkItemStatements) {
  /** A repeated offer takes what the context holds by then. */
  function loadedBy(sessionId: string): Read<Loaded> {
    const context = items.startContext(sessionId);
    const [extensions, certificates] = [
      items.extensionsOf(sessionId),
      items.certificatesOf(sessionId),
    ];
    return made(loaded, { context, extensions, certificates });
  }

  return ({ id, kind, sessionId, traceparent }: LeasedJob, leaseId: string): Read<LeasedWork> => {
    const lease = { leaseId, traceparent };
    if (kind === 'build') return made(build, lease, items.build(id));
    const loading = loadedBy(must(sessionId, 'session of a job'));
    if (kind === 'session') return made(session, lease, items.session(id), loading);
    return made(invocation, lease, items.invocation(id), loading);
  };
}

type Lease = Pick<LeasedWork, 'leaseId' | 'traceparent'>;
type ReadOf<Name extends keyof WorkItemStatements> = ReturnType<WorkItemStatements[Name]>;

function* loaded(reads: {
  context: ReadOf<'startContext'>;
  extensions: ReadOf<'extensionsOf'>;
  certificates: ReadOf<'certificatesOf'>;
}): Steps<Loaded> {
  const context = yield* reads.context;
  const [extensions, certificates] = [yield* reads.extensions, yield* reads.certificates];
  return { ...(context && { context }), extensions, certificates };
}

function* build(lease: Lease, row: ReadOf<'build'>): Steps<LeasedWork> {
  const item = must(yield* row, 'build of a job');
  return { kind: 'build', ...lease, ...item, timeoutMs: BUILD_TIMEOUT_MS };
}

function* session(lease: Lease, row: ReadOf<'session'>, loading: Read<Loaded>): Steps<LeasedWork> {
  const item = must(yield* row, 'session of a job');
  return { kind: 'session', ...lease, ...item, ...(yield* loading) };
}

function* invocation(
  lease: Lease,
  row: ReadOf<'invocation'>,
  loading: Read<Loaded>,
): Steps<LeasedWork> {
  const item = must(yield* row, 'function, version and bundle of an invocation');
  return { kind: 'invocation', ...lease, ...item, ...(yield* loading) };
}
