/** The columns of sessions in PostgreSQL, and their values. */
import type { ListedSession } from '../../types/sessions.ts';
import { LABELS_OF_SESSION, sortedLabels } from './labels.ts';

/** Flags are numbers, as in SQLite, and a list is JSON. */
export type Stored<Row extends { keepAlive: boolean; labels: string[] }> = Omit<
  Row,
  'keepAlive' | 'labels'
> & { keepAlive: number; labels: string };

export const LISTED_COLUMNS = `id, project_id AS "projectId", status, region,
  context_id AS "contextId", keep_alive AS "keepAlive", proxy_bytes AS "proxyBytes",
  user_metadata AS "userMetadata", created_at AS "createdAt", updated_at AS "updatedAt",
  started_at AS "startedAt", ended_at AS "endedAt", expires_at AS "expiresAt", end_reason AS
  "endReason",
  ${LABELS_OF_SESSION}`;

export function listed<Row extends ListedSession>(row: Stored<Row>): Row {
  const flags = { keepAlive: row.keepAlive === 1, labels: sortedLabels(row.labels) };
  return { ...row, ...flags } as unknown as Row; // the same members
}
