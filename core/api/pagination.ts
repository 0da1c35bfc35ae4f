/**
 * Pagination by cursor: newest first; the cursor is the last id of the previous page. Ids are UUID
 * v7, so pages never overlap. Also pagination by offset, where the interface has it
 * (proto/spec/rest.md 2).
 */
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { isId } from '../common/ids.ts';

/** Source: proto/spec/rest.md 2. */
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

type Wanted = { limit?: number | undefined; cursor?: string | undefined };
type Page<T> = { data: T[]; limit: number; nextCursor: string | null };

/**
 * The requested page. `read` fetches one row more than the page contains, which shows whether it is
 * the last. Throws INVALID_FIELD and INVALID_CURSOR.
 */
export async function readPage<R extends { id: string }, T>(
  wanted: Wanted,
  read: (page: { before: string | undefined; limit: number }) => Promise<R[]>,
  toProto: (row: R) => T,
): Promise<Page<T>> {
  const limit = wanted.limit ?? LIMIT_DEFAULT;
  if (limit < 1 || limit > LIMIT_MAX) throw invalidField('limit', `must be 1 to ${LIMIT_MAX}.`);
  const before = wanted.cursor;
  if (before !== undefined && !isId(before)) {
    throw new Fault('INVALID_CURSOR', '`cursor` is not valid.', { field: 'cursor' });
  }
  const rows = await read({ before, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const nextCursor = rows.length > limit ? (shown.at(-1)?.id ?? null) : null;
  return { data: shown.map(toProto), limit, nextCursor };
}

export function readOffsets(request: { offset?: number | undefined; limit?: number | undefined }): {
  offset: number;
  limit: number;
} {
  const { offset = 0, limit = LIMIT_DEFAULT } = request;
  if (limit < 1 || limit > LIMIT_MAX) throw invalidField('limit', `must be 1 to ${LIMIT_MAX}.`);
  return { offset, limit };
}
