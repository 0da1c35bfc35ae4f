/** The audit of changes made with logins of the console, in SQLite. */
import { oldIds } from '../../../common/ids.ts';
import type { AuditOps, AuditRow } from '../../types/audit.ts';
import type { ListWanted } from '../../types/console.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { hasOldId } from '../times.ts';
import { ENTRIES_MAX, ROWS_MAX, type Walk, walks } from './walk.ts';

const OF_ALL = {
  columns: `audit_events.id AS id, audit_events.created_at AS createdAt, login, key_id AS keyId,
    operation, object_id AS objectId, audit_events.project_id AS projectId,
    projects.name AS projectName, address, outcome`,
  table: 'audit_events INDEXED BY audit_events_by_time',
  joins: 'LEFT JOIN projects ON projects.id = audit_events.project_id',
  where: 'TRUE',
  at: 'audit_events.created_at',
  id: 'audit_events.id',
} satisfies Walk;
const OF_PROJECT = {
  ...OF_ALL,
  table: 'audit_events INDEXED BY audit_events_by_project',
  where: 'audit_events.project_id = @projectId',
} satisfies Walk;
const MATCHING = `(instr(lower(operation), @text) OR instr(object_id, @text)
  OR instr(key_id, @text) OR instr(lower(projects.name), @text) OR instr(address, @text))`;

export function auditOps(tx: Tx): AuditOps {
  const { write, changes } = queries(tx);
  const all = walks<ListWanted, AuditRow>(tx, OF_ALL);
  const matchingAll = walks<ListWanted, AuditRow>(tx, { ...OF_ALL, filter: MATCHING });
  const own = walks<ListWanted, AuditRow>(tx, OF_PROJECT);
  const matchingOwn = walks<ListWanted, AuditRow>(tx, { ...OF_PROJECT, filter: MATCHING });
  // Index audit_events_by_time.
  const purge = changes<[object]>(`
    DELETE FROM audit_events WHERE id IN (
      SELECT id FROM audit_events WHERE created_at < @before AND ${hasOldId('id')}
      ORDER BY created_at LIMIT @max)`);
  return {
    addAuditEvent: write(`
      INSERT INTO audit_events
        (id, created_at, login, key_id, operation, object_id, project_id, address)
      VALUES (@id, @at, @login, @keyId, @operation, @objectId, @projectId, @address)`),
    endAuditEvent: write(`
      UPDATE audit_events SET outcome = @outcome, object_id = COALESCE(object_id, @objectId),
        project_id = COALESCE(project_id, @projectId)
      WHERE id = @id`),
    auditEvents({ isOfAll, ...wanted }) {
      if (wanted.text === undefined) return (isOfAll ? all : own)(wanted, ENTRIES_MAX);
      return (isOfAll ? matchingAll : matchingOwn)(wanted, ROWS_MAX);
    },
    purgeAudit: (wanted) => purge({ ...wanted, ...oldIds(wanted) }),
  };
}
