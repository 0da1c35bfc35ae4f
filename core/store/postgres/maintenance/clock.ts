/**
 * The clock of the database's server, in milliseconds. Stored times are not moved when it is set:
 * core/maintenance/database-clock.ts.
 */

import { must } from '../../../../proto/common/must.ts';
import type { Read } from '../../operations/steps.ts';
import { statements } from '../engine/statements.ts';
import { mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

export function clockOps(tx: Tx): { serverTime(): Read<number> } {
  const time = statements(tx).value<[], number>('SELECT now_ms()');
  return { serverTime: () => mapped(time(), (ms) => must(ms, 'time')) };
}
