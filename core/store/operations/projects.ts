/** Projects, their queues, their limits, and the API keys that they manage themselves. */
import { must } from '../../../proto/common/must.ts';
import type { WorkKind } from '../types/leases.ts';
import type {
  KeyLimits,
  KeyOps,
  LimitChange,
  NewApiKey,
  OperatedRow,
  OperatorOps,
  ProjectOps,
  ProjectRow,
} from '../types/projects.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

/**
 * Builds that one project may run at once. Ours: a build takes a whole core for its install and
 * bundling.
 */
const BUILDS_CAP = 2;

/** None of its own: those that live are counted when one is created, released ones are not. */
const SESSIONS_CAP = 2 ** 31;

type Change = LimitChange & { id: string; at: number };

export type ProjectStatements = {
  /** False, and nothing inserted, when the name is taken. */
  insert(project: ProjectRow): Read<boolean>;
  byName(name: string): Read<ProjectRow | undefined>;
  /** By id or name. */
  find(project: string): Read<ProjectRow | undefined>;
  insertQueue(kind: WorkKind, projectId: string, cap: number): void;
  setLimits(change: Change): void;
  /** With usage up to `at`. */
  operated(id: string, at: number): Read<OperatedRow>;
};

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

type Operations = Pick<ProjectOps, 'ensureProject'> & Pick<OperatorOps, 'addProject' | 'setLimits'>;

export function projectOperations(
  projects: ProjectStatements,
  { wake }: Transaction,
): InSteps<Operations> {
  /** The project of that name, which is created with its queues when there is none. */
  function* ensure(project: ProjectRow): Steps<ProjectRow> {
    const { id, name, concurrency } = project;
    if (yield* projects.insert(project)) {
      projects.insertQueue('invocation', id, concurrency);
      projects.insertQueue('build', id, BUILDS_CAP);
      projects.insertQueue('session', id, SESSIONS_CAP);
    }
    return must(yield* projects.byName(name), 'project just made');
  }

  return {
    ensureProject: ensure,
    *addProject({ project, limits, at }) {
      const { id } = yield* ensure(project);
      if (id !== project.id) return undefined;
      projects.setLimits({ id, at, ...limits });
      return yield* projects.operated(id, at);
    },
    *setLimits({ project, limits, at }) {
      const found = yield* projects.find(project);
      if (!found) return undefined;
      projects.setLimits({ id: found.id, at, ...limits });
      wake('work:invocation'); // more may run than before
      return yield* projects.operated(found.id, at);
    },
  };
}

/**
 * The number of keys is bounded: valid ones, those that were revoked recently, which runners still
 * compare with, and the older ones that lists show.
 */
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
