/**
 * API keys that a project manages itself. Their number is bounded: valid ones, those that were
 * revoked recently, which runners still compare with, and the older ones that lists show.
 */
import type { KeyLimits, KeyOps, NewApiKey } from '../types/projects.ts';
import type { InSteps, Read, Transaction } from './steps.ts';

export type KeyStatements = {
  countValid(projectId: string): Read<number>;
  /** Valid ones, and those that were revoked since then. */
  countRecent(wanted: { projectId: string; since: number }): Read<number>;
  insert(key: NewApiKey & { madeBy: string }): void;
  /** Removes those that were revoked before `since`, but for the last `keptMax`. */
  trim(wanted: { projectId: string } & KeyLimits): void;
  /** The key of the project; `isValid`: 1 until it is revoked. */
  find(wanted: { id: string; projectId: string }): Read<{ isValid: number } | undefined>;
  revoke(wanted: { id: string; at: number }): void;
};

export function keyOperations(
  keys: KeyStatements,
  { wake }: Transaction,
): InSteps<Omit<KeyOps, 'listProjectKeys'>> {
  return {
    *createProjectKey(key, limits) {
      const { projectId } = key;
      if ((yield* keys.countValid(projectId)) >= limits.max) return 'full';
      const recent = yield* keys.countRecent({ projectId, since: limits.since });
      if (recent >= limits.recentMax) return 'full';
      keys.trim({ projectId, ...limits });
      keys.insert(key);
      return 'added';
    },
    *revokeProjectKey({ evenLast, ...wanted }) {
      const found = yield* keys.find(wanted);
      if (!found) return undefined;
      if (found.isValid !== 1) return 'revoked';
      const valid = yield* keys.countValid(wanted.projectId);
      if (valid <= 1 && !evenLast) return 'last';
      keys.revoke(wanted);
      wake('revocations');
      return 'revoked';
    },
  };
}
