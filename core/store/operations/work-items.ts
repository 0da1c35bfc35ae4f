/**
 * Work items: a leased session, invocation or build as its runner receives it, with the rows that
 * the work needs (context, extension, bundle, params).
 */
import { must } from '../../../proto/common/must.ts';
import type { ContextContent, LeasedContext } from '../types/contexts.ts';
import type { LeasedExtension } from '../types/files.ts';
import type {
  LeasedBuild,
  LeasedInvocation,
  LeasedSession,
  LeasedWork,
  Loaded,
} from '../types/leases.ts';
import { BUILD_TIMEOUT_MS } from './builds.ts';
import type { Job } from './queue.ts';
import type { Read, Steps } from './steps.ts';

type Beside = 'kind' | 'leaseId' | keyof Loaded;

export type WorkItemStatements = {
  invocation(id: string): Read<Omit<LeasedInvocation, Beside> | undefined>;
  build(id: string): Read<Omit<LeasedBuild, Beside | 'timeoutMs'> | undefined>;
  session(id: string): Read<Omit<LeasedSession, Beside> | undefined>;
  /** What the session's context holds; undefined when it has none, or a deleted one. */
  contextOf(
    sessionId: string,
  ): Read<(ContextContent & { persist: boolean; saveSeq: number }) | undefined>;
  /** What the session starts from: that blob is kept until the session has ended. */
  rememberContext(start: { sessionId: string; blobId: string | null; saveSeq: number }): void;
  /** A deleted extension is loaded all the same. */
  extensionsOf(sessionId: string): Read<LeasedExtension[]>;
  /** In PEM. A deleted certificate is trusted all the same. */
  certificatesOf(sessionId: string): Read<string[]>;
};

export function workItems(items: WorkItemStatements) {
  /** A repeated offer takes what the context holds by then. */
  function* contextOf(sessionId: string): Steps<LeasedContext | undefined> {
    const found = yield* items.contextOf(sessionId);
    if (!found) return undefined;
    const { saveSeq, ...context } = found;
    items.rememberContext({ sessionId, blobId: context.blobId, saveSeq });
    return context;
  }

  function* loadedBy(sessionId: string): Steps<Loaded> {
    const context = yield* contextOf(sessionId);
    const extensions = yield* items.extensionsOf(sessionId);
    const certificates = yield* items.certificatesOf(sessionId);
    return { ...(context && { context }), extensions, certificates };
  }

  return function* (job: Job, leaseId: string): Steps<LeasedWork> {
    const { id, kind, traceparent } = job;
    switch (kind) {
      case 'invocation': {
        const found = yield* items.invocation(id);
        const item = must(found, 'function, version and bundle of an invocation');
        const loaded = yield* loadedBy(item.sessionId);
        return { kind, leaseId, traceparent, ...item, ...loaded };
      }
      case 'session': {
        const item = must(yield* items.session(id), 'session of a job');
        return { kind, leaseId, traceparent, ...item, ...(yield* loadedBy(id)) };
      }
      case 'build': {
        const item = must(yield* items.build(id), 'build of a job');
        return { kind, leaseId, traceparent, ...item, timeoutMs: BUILD_TIMEOUT_MS };
      }
    }
  };
}
