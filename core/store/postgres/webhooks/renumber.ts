/**
 * Events that were written on another server have numbers of its transactions: those of a moved or
 * a restored database. This server's next numbers could be theirs, and listeners would read them as
 * new events. So they get numbers below all that follow.
 */
import type { Connection } from '../engine/connection.ts';
import { LOCKS } from '../engine/locks.ts';

/** Inside the caller's transaction, before any operation. */
export async function renumberEvents(connection: Connection): Promise<void> {
  await connection.send('SELECT pg_advisory_xact_lock($1)', [LOCKS.migrations]);
  const [row] = await connection.command(`
    SELECT MIN(seq) AS first, MAX(seq) AS last,
      pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT << 12 AS next
    FROM events`);
  const [first, last, next] = [row?.['first'], row?.['last'], row?.['next']].map(Number);
  if (first === undefined || last === undefined || next === undefined || last < next) return;
  // none of the new numbers is one of the old
  const shift = last - Math.min(first, next) + 1;
  await connection.send('UPDATE events SET seq = seq - $1', [shift]);
}
