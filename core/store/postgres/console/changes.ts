/**
 * What changes in the projects that a console of this core watches. Triggers of the schema write a
 * row for each change of a status in a watched project, whichever core made it; this core takes the
 * rows at intervals, and keeps them in memory until its console reads them.
 */
import type { Topic } from '../../messages.ts';
import type { ChangedKind, Changes, ConsoleOps } from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import { found, type InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** Ids of one kind between two readings; with more, the whole list counts as changed. */
const IDS_MAX = 100;
/** In milliseconds: a core that has not renewed its watches for so long has ended. */
const WATCH_MS = 60_000;
const RENEW_MS = 20_000;
const UNTIL = `now_ms() + ${WATCH_MS}`;
const KINDS: readonly ChangedKind[] = [
  ...(['sessions', 'invocations', 'builds', 'deliveries', 'functions'] as const),
  ...(['webhooks', 'contexts', 'downloads', 'extensions', 'keys'] as const),
];

type Row = { projectId: string; kind: ChangedKind; id: string };

/** The projects that this core watches. */
export class Watches {
  readonly #watcher: string;
  readonly #projects = new Map<string, Map<ChangedKind, Set<string> | 'many'>>();
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(watcher: string) {
    this.#watcher = watcher;
  }

  get watcher(): string {
    return this.#watcher;
  }

  get projectIds(): string[] {
    return [...this.#projects.keys()];
  }

  /** Whether the watches have to be renewed. */
  isDue(): boolean {
    return performance.now() - this.#renewedAt > RENEW_MS;
  }

  renewed(): void {
    this.#renewedAt = performance.now();
  }

  begin(projectId: string): void {
    if (!this.#projects.has(projectId)) this.#projects.set(projectId, new Map());
  }

  end(projectId: string): void {
    this.#projects.delete(projectId);
  }

  add(rows: readonly Row[]): void {
    for (const { projectId, kind, id } of rows) {
      const kinds = this.#projects.get(projectId);
      const ids = kinds?.get(kind) ?? new Set();
      if (kinds === undefined || ids === 'many') continue;
      kinds.set(kind, ids.size >= IDS_MAX && !ids.has(id) ? 'many' : ids.add(id));
    }
  }

  /** Changes were lost. */
  addAll(projectId: string): void {
    for (const kind of KINDS) this.#projects.get(projectId)?.set(kind, 'many');
  }

  take(projectId: string): Changes[] {
    const kinds = this.#projects.get(projectId);
    const taken = [...(kinds ?? [])].map(([kind, ids]): Changes => {
      return { kind, ids: ids === 'many' ? undefined : [...ids] };
    });
    kinds?.clear();
    return taken;
  }
}

type Names = 'watchChanges' | 'unwatchChanges' | 'takeChanges';

export function consoleChangeOps(tx: Tx, watches: Watches): InReads<Pick<ConsoleOps, Names>> {
  const { rows, write, done } = statements(tx);
  const { watcher } = watches;
  const watch = done<[object]>(`
    INSERT INTO console_watches (watcher, project_id, until)
    SELECT @watcher, id, ${UNTIL} FROM projects WHERE id = @projectId
    ON CONFLICT (watcher, project_id) DO UPDATE SET until = excluded.until`);
  const unwatch = done<[object]>(`
    DELETE FROM console_watches WHERE watcher = @watcher AND project_id = @projectId`);
  const forget = write<[object]>(`
    DELETE FROM console_changes WHERE watcher = @watcher AND project_id = @projectId`);
  const take = rows<[object], Row>(`
    DELETE FROM console_changes WHERE watcher = @watcher AND project_id = @projectId
    RETURNING project_id AS "projectId", kind, object_id AS id`);
  return {
    watchChanges(projectId) {
      watches.begin(projectId);
      return watch({ watcher, projectId });
    },
    unwatchChanges(projectId) {
      watches.end(projectId);
      forget({ watcher, projectId });
      return unwatch({ watcher, projectId });
    },
    *takeChanges(projectId) {
      watches.add(yield* take({ watcher, projectId }));
      return watches.take(projectId);
    },
  };
}

/** At intervals: renews the watches, takes what has changed; gives the topics to wake. */
export function watchPoll(tx: Tx, watches: Watches): InReads<{ pollChanges(): Topic[] }> {
  const { rows, values, write } = statements(tx);
  const { watcher } = watches;
  // A row that is new was lost: the tables do not outlive a crash of the database.
  const renew = values<[object], string>(`
    INSERT INTO console_watches (watcher, project_id, until)
    SELECT @watcher, id, ${UNTIL} FROM projects WHERE id = ANY(@projectIds::TEXT[])
    ON CONFLICT (watcher, project_id) DO UPDATE SET until = excluded.until
    RETURNING CASE WHEN xmax = 0 THEN project_id END`);
  const forgetEnded = write<[]>(`DELETE FROM console_watches WHERE until < now_ms() - ${WATCH_MS}`);
  const forgetTheirs = write<[]>(`
    DELETE FROM console_changes
    WHERE watcher NOT IN (SELECT watcher FROM console_watches)`);
  const take = rows<[string], Row>(`
    DELETE FROM console_changes WHERE watcher = ?
    RETURNING project_id AS "projectId", kind, object_id AS id`);
  return {
    *pollChanges() {
      const { projectIds } = watches;
      if (projectIds.length === 0) return yield* found([]);
      const changed = new Set<string>();
      if (watches.isDue()) {
        const lost = (yield* renew({ watcher, projectIds })).filter((id) => id !== null);
        for (const id of lost) watches.addAll(id);
        for (const id of lost) changed.add(id);
        forgetEnded();
        forgetTheirs();
        watches.renewed();
      }
      const taken = yield* take(watcher);
      watches.add(taken);
      for (const { projectId } of taken) changed.add(projectId);
      return [...changed].map((id): Topic => `changes:${id}`);
    },
  };
}
