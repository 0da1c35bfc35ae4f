/**
 * Removals of ended work in small steps: invocations, builds with their versions, logs, and what
 * belonged to deleted functions. Each stops where its budget of rows ends, and leaves nothing that
 * the next one does not find.
 */
import type { FunctionDeletionOps } from '../../types/functions.ts';
import type { Purge, WorkRetentionOps } from '../../types/maintenance.ts';
import type { InSteps, Read, Steps, Transaction } from '../steps.ts';

/** The rows that an operation may still remove. */
type Budget = { left: number };

type Range = Purge & { after: string };
type VersionOf = { id: string; buildId: string };

/** Statements that remove return the number of rows. */
export type RemovalStatements = {
  /** Log lines of work with a smaller id; then numbers of lines, of logs without lines. */
  lines(beforeId: string, max: number): Read<number>;
  heads(beforeId: string, max: number): Read<number>;
  linesOf(ownerId: string, max: number): Read<number>;
  headOf(ownerId: string): void;
  /** Ended ones, oldest first. */
  invocations(range: Range): Read<string[]>;
  /** Idempotency keys of the invocation. */
  keys(invocationId: string): void;
  invocation(id: string): Read<number>;
  /** Ended ones, oldest first. */
  builds(range: Range): Read<string[]>;
  /** Of the build: neither the newest of their function nor used by an invocation. */
  versions(buildId: string): Read<string[]>;
  version(id: string): Read<number>;
  hasVersion(buildId: string): Read<boolean>;
  build(id: string): Read<number>;
  deletedFunctions(max: number): Read<string[]>;
  /** Its id, when it was deleted. */
  deletedOne(id: string): Read<string[]>;
  deletedFunction(id: string): Read<number>;
  versionsOf(functionId: string, max: number): Read<VersionOf[]>;
  /** Whether the build has a version beside that one. */
  hasOther(buildId: string, versionId: string): Read<boolean>;
  invocationsOf(versionId: string, max: number): Read<string[]>;
  /** Archive and bundle of the build. */
  blobsOf(build: { id: string }): Read<string[]>;
  /** Its id, when no build has the blob and its row was removed. */
  blob(id: string): Read<string[]>;
};

export function removalOperations(
  sql: RemovalStatements,
  tx: Transaction,
): InSteps<WorkRetentionOps & Pick<FunctionDeletionOps, 'purgeFunctions'>> {
  const { purgeBuild, purgeInvocation, purgeFunction } = purges(sql);
  return {
    *purgeFunctions({ functionId, max }) {
      const budget = { left: max };
      const dropped: string[] = [];
      const ids = functionId === undefined ? sql.deletedFunctions(max) : sql.deletedOne(functionId);
      for (const id of yield* ids) {
        if (budget.left > 0) dropped.push(...(yield* purgeFunction(id, budget)));
      }
      tx.crashPoint('purge-functions');
      return { rows: max - budget.left, dropped };
    },
    *purgeLogs({ beforeId, max }) {
      const lines = yield* sql.lines(beforeId, max);
      const heads = lines < max ? yield* sql.heads(beforeId, max - lines) : 0;
      tx.crashPoint('purge-logs');
      return lines + heads;
    },
    *purgeInvocations(purge) {
      const budget = { left: purge.max };
      for (const id of yield* sql.invocations({ after: '', ...purge })) {
        if (budget.left > 0) yield* purgeInvocation(id, budget);
      }
      tx.crashPoint('purge-invocations');
      return purge.max - budget.left;
    },
    *purgeBuilds(purge) {
      const ids = yield* sql.builds(purge);
      const budget = { left: purge.max };
      let [removed, last] = [0, purge.after];
      for (const id of ids) {
        if (yield* purgeBuild(id, budget)) removed += 1;
        if (budget.left <= 0) break; // continues with this build
        last = id;
      }
      tx.crashPoint('purge-builds');
      const isEnd = budget.left > 0 && ids.length < purge.max;
      return { removed, last: isEnd ? undefined : last };
    },
  };
}

/** Removals that stop where their budget of rows ends. */
function purges(sql: RemovalStatements) {
  /** Removes a build's unused versions, then the build when no version is left. */
  function* purgeBuild(id: string, budget: Budget): Steps<boolean> {
    for (const versionId of yield* sql.versions(id)) budget.left -= yield* sql.version(versionId);
    if ((yield* sql.hasVersion(id)) || !(yield* purgeLog(id, budget))) return false;
    budget.left -= yield* sql.build(id);
    return true;
  }

  /** Removes the log of an invocation or build; false when lines are left. */
  function* purgeLog(ownerId: string, budget: Budget): Steps<boolean> {
    if (budget.left > 0) budget.left -= yield* sql.linesOf(ownerId, budget.left);
    if (budget.left <= 0) return false;
    sql.headOf(ownerId);
    return true;
  }

  /** Removes an invocation, its log first, so that an operation may stop anywhere. */
  function* purgeInvocation(id: string, budget: Budget): Steps<void> {
    if (!(yield* purgeLog(id, budget))) return;
    sql.keys(id);
    budget.left -= yield* sql.invocation(id);
  }

  /**
   * Removes a version with its invocations; its build too, unless that has another version. The
   * version is removed after the build's log, so that the build is found again. Returns the blobs.
   */
  function* purgeVersion({ id, buildId }: VersionOf, budget: Budget): Steps<string[]> {
    for (const invocationId of yield* sql.invocationsOf(id, budget.left)) {
      yield* purgeInvocation(invocationId, budget);
      if (budget.left <= 0) return [];
    }
    const isLast = !(yield* sql.hasOther(buildId, id));
    if (isLast && !(yield* purgeLog(buildId, budget))) return [];
    budget.left -= yield* sql.version(id);
    if (!isLast) return [];
    const blobs = yield* sql.blobsOf({ id: buildId });
    yield* sql.build(buildId);
    const dropped: string[] = [];
    for (const blob of blobs) dropped.push(...(yield* sql.blob(blob)));
    return dropped;
  }

  function* purgeFunction(id: string, budget: Budget): Steps<string[]> {
    const dropped: string[] = [];
    for (const version of yield* sql.versionsOf(id, budget.left)) {
      dropped.push(...(yield* purgeVersion(version, budget)));
      if (budget.left <= 0) return dropped;
    }
    budget.left -= yield* sql.deletedFunction(id);
    return dropped;
  }

  return { purgeBuild, purgeInvocation, purgeFunction };
}
