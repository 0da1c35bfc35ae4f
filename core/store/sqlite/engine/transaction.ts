/**
 * The context of every operation in this folder: the database inside its transaction, wakes, and
 * crash points.
 */
import type { Database } from 'better-sqlite3';
import type { Transaction } from '../../operations/steps.ts';

export type Tx = Transaction & { db: Database };

/**
 * Statements that several operations share, prepared at the first use, once for each open database.
 */
export function preparedOnce<Statements>(prepare: (tx: Tx) => Statements): (tx: Tx) => Statements {
  const prepared = new WeakMap<Tx, Statements>();
  return (tx) => {
    const statements = prepared.get(tx) ?? prepare(tx);
    prepared.set(tx, statements);
    return statements;
  };
}
