/**
 * Logs in SQLite: the lines that invocations and builds print. Each owner has a head that says
 * which line comes next, so that a repeated append changes nothing; past the limit lines are
 * counted and no longer kept, which one marker line says.
 */
import { invalidField } from '../../../../proto/rpc/errors.ts';
import type { LogLineRow, LogOps } from '../../types/leases.ts';
import type { Tx } from '../engine/transaction.ts';

type Head = { next: number; bytes: number; cut: number };

export function logOps({ db, crashPoint }: Tx): LogOps {
  const owner = db
    .prepare<[string], string>('SELECT id FROM jobs WHERE lease_id = ?') // index jobs_by_lease
    .pluck();
  const headOf = db.prepare<[string], Head>(
    'SELECT next, bytes, cut FROM log_heads WHERE owner_id = ?',
  );
  const saveHead = db.prepare<[object]>(`
    INSERT INTO log_heads (owner_id, next, bytes, cut) VALUES (@ownerId, @next, @bytes, @cut)
    ON CONFLICT (owner_id) DO UPDATE SET next = @next, bytes = @bytes, cut = @cut`);
  const insert = db.prepare<[object]>(`
    INSERT INTO log_lines (owner_id, number, level, message, at)
    VALUES (@ownerId, @number, @level, @message, @at)`);
  const lines = db.prepare<[string], LogLineRow>(`
    SELECT message, at, level FROM log_lines WHERE owner_id = ? ORDER BY number`);

  return {
    appendLogs({ leaseId, first, lines: given, maxBytes, linesMax, marker }) {
      const ownerId = owner.get(leaseId);
      if (ownerId === undefined) return false;
      const head = headOf.get(ownerId) ?? { next: 0, bytes: 0, cut: 0 };
      if (first > head.next) throw invalidField('first', `must be at most ${head.next}`);
      for (const line of given.slice(head.next - first)) {
        const number = head.next++;
        if (head.cut === 1) continue;
        head.bytes += Buffer.byteLength(line.message);
        if (head.bytes > maxBytes || number >= linesMax) head.cut = 1;
        const kept = head.cut === 1 ? { ...line, level: 'warn', message: marker } : line;
        insert.run({ ...kept, ownerId, number });
      }
      crashPoint('append-logs');
      saveHead.run({ ...head, ownerId });
      return true;
    },
    listLogs: (ownerId) => lines.all(ownerId),
  };
}
