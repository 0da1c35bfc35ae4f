/**
 * The store without its thread: the same operations on the same schema, and direct access to the
 * database.
 */
import type { Database } from 'better-sqlite3';
import { newId } from '../../../core/common/ids.ts';
import type { Topic } from '../../../core/store/messages.ts';
import { emitEvent, type NewEvent } from '../../../core/store/operations/events.ts';
import { openDatabase } from '../../../core/store/sqlite/engine/open.ts';
import { later, run } from '../../../core/store/sqlite/engine/steps.ts';
import type { Tx } from '../../../core/store/sqlite/engine/transaction.ts';
import { allOps } from '../../../core/store/sqlite/ops.ts';
import { eventStatements } from '../../../core/store/sqlite/webhooks/events.ts';
import type { Store } from '../../../core/store/types.ts';
import { TEST_START_MS } from '../clock.ts';
import { tempDirectory } from '../temp.ts';

export type BareStore = AsyncDisposable & {
  store: Store;
  db: Database;
  /** An existing project. */
  projectId: string;
  /** Writes an event as a status change does, and wakes the waiting calls. */
  emit(event: NewEvent): void;
  /** All rows of a query. */
  rows(sql: string, ...values: unknown[]): Record<string, unknown>[];
};

/** `await using bare = bareStore()` */
export function bareStore(durability: 'full' | 'normal' = 'normal'): BareStore {
  const dir = tempDirectory();
  const open = openDatabase({ dir: dir.path, durability });
  const { db } = open;
  const listeners = new Map<Topic, Set<() => void>>();
  const woken = new Set<Topic>();
  const tx: Tx = { db, wake: (topic) => void woken.add(topic), crashPoint: () => {}, later };
  const commit = <T>(run: () => T): T => {
    woken.clear();
    const value = db.transaction(run).immediate();
    for (const topic of woken) for (const listener of listeners.get(topic) ?? []) listener();
    return value;
  };
  const ops = Object.entries(allOps(tx)).map(([name, op]) => [
    name,
    async (...args: unknown[]) => commit(() => (op as (...a: unknown[]) => unknown)(...args)),
  ]);
  const store = {
    ...Object.fromEntries(ops),
    onWake(topic: Topic, listener: () => void) {
      const all = listeners.get(topic) ?? new Set();
      listeners.set(topic, all.add(listener));
      return () => all.delete(listener);
    },
    syncP95Ms: () => undefined,
    async close() {},
  } as Store;
  return {
    store,
    db,
    projectId: addProject(tx, 'default'),
    emit: (event) => commit(() => emit(tx, event)),
    rows: (sql, ...values) => db.prepare<unknown[], Record<string, unknown>>(sql).all(...values),
    async [Symbol.asyncDispose]() {
      open.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** Writes an event without a change of a resource. */
export function emit(tx: Tx, event: NewEvent): void {
  run(emitEvent(eventStatements(tx), tx, event));
}

function addProject(tx: Tx, name: string): string {
  const at = TEST_START_MS;
  const row = { id: newId(), name, defaultTimeout: 900, concurrency: 25 };
  return allOps(tx).ensureProject({ ...row, createdAt: at, updatedAt: at }).id;
}

/** A call of that project, as core/api/interceptors.ts passes it to a service. */
export function callerOf(projectId: string, timeoutMs = 30_000) {
  const call = {
    signal: new AbortController().signal,
    deadline: performance.now() + timeoutMs,
    metadata: {},
  };
  return { projectId, call };
}
