/** What the console reads, in SQLite. */
import type { ConsoleOps } from '../../types/console.ts';
import type { Tx } from '../engine/transaction.ts';
import { consoleSessionOps } from './sessions.ts';

export function consoleOps(tx: Tx): ConsoleOps {
  return { ...consoleSessionOps(tx) };
}
