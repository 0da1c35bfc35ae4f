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

/**
 * `name:n` ends the process with SIGKILL at the n-th pass of that point, as a power loss would.
 * Undefined: never.
 */
export function crashPoints(crashAt: string | undefined): (name: string) => void {
  if (crashAt === undefined) return () => {};
  const colon = crashAt.lastIndexOf(':');
  const wanted = crashAt.slice(0, colon);
  let left = Number(crashAt.slice(colon + 1));
  return (name) => {
    if (name !== wanted) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
