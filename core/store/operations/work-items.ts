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
import { made, type Read } from './steps.ts';

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
    const starting = items.startContext(sessionId);
    const [loaded, trusted] = [items.extensionsOf(sessionId), items.certificatesOf(sessionId)];
    return made(function* () {
      const context = yield* starting;
      const [extensions, certificates] = [yield* loaded, yield* trusted];
      return { ...(context && { context }), extensions, certificates };
    });
  }

  return ({ id, kind, sessionId, traceparent }: LeasedJob, leaseId: string): Read<LeasedWork> => {
    const lease = { leaseId, traceparent };
    if (kind === 'build') {
      const build = items.build(id);
      return made(function* () {
        const item = must(yield* build, 'build of a job');
        return { kind, ...lease, ...item, timeoutMs: BUILD_TIMEOUT_MS };
      });
    }
    const loading = loadedBy(must(sessionId, 'session of a job'));
    if (kind === 'session') {
      const session = items.session(id);
      return made(function* () {
        const item = must(yield* session, 'session of a job');
        return { kind, ...lease, ...item, ...(yield* loading) };
      });
    }
    const invocation = items.invocation(id);
    return made(function* () {
      const item = must(yield* invocation, 'function, version and bundle of an invocation');
      return { kind, ...lease, ...item, ...(yield* loading) };
    });
  };
}
