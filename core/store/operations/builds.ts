/**
 * Builds: their creation and their transitions (states.ts). A COMPLETED build published its
 * functions and versions in the same operation. The deletion of a function is here too.
 */
import { must } from '../../../proto/common/must.ts';
import type {
  BuildOps,
  BuildRow,
  BuiltFunction,
  FunctionDeletionOps,
  NewBuild,
} from '../types/functions.ts';
import type { BuildOutcome, BuiltManifest } from '../types/leases.ts';
import type { Owned } from '../types/rows.ts';
import { buildEvent, type EventStatements, emitEvent } from './events.ts';
import type { ScheduleStatements } from './functions/schedules.ts';
import type { Queue } from './queue.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

/** From the lease of a build. Source: proto/spec/functions.md 4. */
export const BUILD_TIMEOUT_MS = 600_000;

export type BuildStatements = {
  /** PENDING. */
  insert(build: NewBuild): Read<BuildRow>;
  isPending(id: string): Read<boolean>;
  /** To RUNNING; undefined when it was not PENDING. */
  start(wanted: { id: string; at: number; expiresAt: number }): Read<BuildRow | undefined>;
  /** Undefined when it has ended. */
  end(wanted: {
    id: string;
    status: 'COMPLETED' | 'FAILED';
    cause: string | null;
    bundleBlobId: string | null;
    leaseId: string | null;
    at: number;
  }): Read<BuildRow | undefined>;
  endedBy(leaseId: string): Read<boolean>;
  /** The id of the project's function of that name, created when there is none. */
  upsertFunction(wanted: BuiltManifest & { projectId: string; at: number }): Read<string>;
  insertVersion(version: BuiltManifest & { projectId: string; buildId: string; at: number }): void;
  built(buildId: string): Read<BuiltFunction[]>;
  isPublished(wanted: Owned): Read<boolean>;
  /** How many invocations of the function wait or run. */
  openInvocations(wanted: Owned): Read<number>;
  deleteFunction(wanted: Owned & { at: number }): void;
  /** From the function. */
  detachSecrets(functionId: string): void;
};

export function buildCreation(
  { builds, queue }: { builds: BuildStatements; queue: Queue },
  { crashPoint }: Transaction,
): InSteps<Pick<BuildOps, 'createBuild'>> {
  return {
    *createBuild(wanted) {
      const { id, projectId, waitUntil, queueMax, traceparent, at } = wanted;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'build', projectId, ...place });
      const row = yield* builds.insert(wanted);
      crashPoint('create-build');
      return row;
    },
  };
}

/** No invocation is ended for it: its user cancels them, or waits. */
export function functionDeletion(
  deps: { builds: BuildStatements; schedules: Pick<ScheduleStatements, 'removeOf'> },
  { crashPoint }: Transaction,
): InSteps<Pick<FunctionDeletionOps, 'deleteFunction'>> {
  return {
    *deleteFunction(wanted) {
      const { builds, schedules } = deps;
      if (!(yield* builds.isPublished(wanted))) return undefined;
      const open = yield* builds.openInvocations(wanted);
      if (open === 0) {
        builds.deleteFunction(wanted);
        schedules.removeOf(wanted.id);
        builds.detachSecrets(wanted.id);
      }
      crashPoint('delete-function');
      return { open };
    },
  };
}

export type BuildEnd = {
  id: string;
  outcome: BuildOutcome;
  /** The lease whose runner reported the end; null when core itself ends it. */
  leaseId: string | null;
  at: number;
};

export type BuildTransitions = ReturnType<typeof buildTransitions>;

export function buildTransitions(
  { builds, events }: { builds: BuildStatements; events: EventStatements },
  tx: Transaction,
) {
  /** Makes a function's next version; a known name keeps its function id. */
  function* publish(build: BuildRow, manifest: BuiltManifest, at: number): Steps<void> {
    const { id: buildId, projectId } = build;
    const functionId = yield* builds.upsertFunction({ ...manifest, projectId, at });
    builds.insertVersion({ ...manifest, functionId, projectId, buildId, at });
  }

  return {
    isPending: builds.isPending,
    endedBy: builds.endedBy,
    /** To RUNNING; returns its expiry. Undefined when it was not PENDING. */
    *start({ id }: { id: string }, at: number): Steps<number | undefined> {
      const row = yield* builds.start({ id, at, expiresAt: at + BUILD_TIMEOUT_MS });
      if (row) yield* emitEvent(events, tx, buildEvent('running', row, []));
      return row?.expiresAt;
    },
    *end({ id, outcome, leaseId, at }: BuildEnd): Steps<void> {
      const isSuccess = outcome.kind === 'success';
      const ended = yield* builds.end({
        id,
        status: isSuccess ? 'COMPLETED' : 'FAILED',
        cause: isSuccess ? null : JSON.stringify(outcome.cause),
        bundleBlobId: isSuccess ? outcome.bundleBlobId : null,
        leaseId,
        at,
      });
      const row = must(ended, 'open build of a job');
      for (const manifest of isSuccess ? outcome.manifests : []) yield* publish(row, manifest, at);
      tx.crashPoint('end-build');
      const event = buildEvent(isSuccess ? 'completed' : 'failed', row, yield* builds.built(id));
      yield* emitEvent(events, tx, event);
    },
  };
}
