/** Lists the audit, which core/api/audit.ts records: a project its own events, the operator all. */
import type {
  AuditEvent,
  AuditServiceService,
} from '../../proto/gen/tabern/v1/operator_console.pb.ts';
import type { ReaderCaller, Service } from '../api/interceptors.ts';
import { cursorAfter, listOf } from '../console/filters.ts';
import type { AuditRow } from '../store/types/audit.ts';
import type { Store } from '../store/types.ts';

export function auditService(
  store: Pick<Store, 'auditEvents'>,
): Service<typeof AuditServiceService, ReaderCaller> {
  return {
    async listAuditEvents(request, { projectId = '' }) {
      const owner = { projectId, list: 'audit' };
      const wanted = { ...listOf(owner, request), isOfAll: projectId === '' };
      const found = await store.auditEvents(wanted);
      return { events: found.rows.map(toProto), nextCursor: cursorAfter(owner, found) };
    },
  };
}

function toProto(row: AuditRow): AuditEvent {
  const { id, login, operation, address } = row;
  return {
    id,
    login,
    operation,
    address,
    createdAt: new Date(row.createdAt),
    keyId: row.keyId ?? undefined,
    objectId: row.objectId ?? undefined,
    projectId: row.projectId ?? undefined,
    projectName: row.projectName ?? undefined,
    outcome: row.outcome ?? undefined,
  };
}
