/** The audit of changes made with logins of the console, in PostgreSQL. */
import { oldIds } from '../../../common/ids.ts';
import type { AuditOps, AuditRow } from '../../types/audit.ts';
import type { ListWanted } from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { hasOldId } from '../maintenance/old-ids.ts';
import { deleteSome } from '../maintenance/some.ts';
import { ENTRIES_MAX, ROWS_MAX, type Walk, walks } from './walk.ts';

const OF_ALL = {
  columns: `audit_events.id AS id, audit_events.created_at AS "createdAt", login, key_id AS "keyId",
    operation, object_id AS "objectId", audit_events.project_id AS "projectId",
    projects.name AS "projectName", address, outcome`,
  table: 'audit_events',
  joins: 'LEFT JOIN projects ON projects.id = audit_events.project_id',
  where: 'TRUE',
  at: 'audit_events.created_at',
  id: 'audit_events.id',
} satisfies Walk;
const OF_PROJECT = {
  ...OF_ALL,
  table: 'audit_events',
  where: 'audit_events.project_id = @projectId',
} satisfies Walk;
const MATCHING = `(strpos(lower(operation), @text) > 0 OR strpos(object_id, @text) > 0
  OR strpos(key_id, @text) > 0 OR strpos(lower(projects.name), @text) > 0 OR strpos(address, @text)
  > 0)`;

export function auditOps(tx: Tx): InReads<AuditOps> {
  const { done, changes } = statements(tx);
  const all = walks<ListWanted, AuditRow>(tx, OF_ALL);
  const matchingAll = walks<ListWanted, AuditRow>(tx, { ...OF_ALL, filter: MATCHING });
  const own = walks<ListWanted, AuditRow>(tx, OF_PROJECT);
  const matchingOwn = walks<ListWanted, AuditRow>(tx, { ...OF_PROJECT, filter: MATCHING });
  // Index audit_events_by_time.
  const purge = changes<[object]>(
    deleteSome(
      'audit_events',
      `audit_events WHERE created_at < @before AND ${hasOldId('id')}
      ORDER BY created_at LIMIT @max`,
    ),
  );
  return {
    addAuditEvent: done(`
      INSERT INTO audit_events
        (id, created_at, login, key_id, operation, object_id, project_id, address)
      VALUES (@id, @at, @login, @keyId, @operation, @objectId, @projectId, @address)`),
    endAuditEvent: done(`
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
