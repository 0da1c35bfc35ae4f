/**
 * Pagination by cursor: newest first; the cursor is the last id of the previous page. Ids are UUID
 * v7, so pages never overlap. Also pagination by offset, where the interface has it
 * (proto/spec/rest.md 2).
 */
import { isId } from '../common/ids.ts';
import { inRange, invalidCursor } from './checks.ts';

/** Source: proto/spec/rest.md 2. */
const LIMIT_DEFAULT = 20;
const LIMITS = { min: 1, max: 100 };

type Page<T> = { data: T[]; limit: number; nextCursor: string | null };

/**
 * The requested page. `read` fetches one row more than the page contains, which shows whether it is
 * the last. Throws INVALID_FIELD and INVALID_CURSOR.
 */
export async function readPage<R extends { id: string }, T>(
  wanted: { limit?: number | undefined; cursor?: string | undefined },
  read: (page: { before: string | undefined; limit: number }) => Promise<R[]>,
  toProto: (row: R) => T,
): Promise<Page<T>> {
  const limit = limitOf(wanted);
  const before = wanted.cursor;
  if (before !== undefined && !isId(before)) throw invalidCursor();
  const rows = await read({ before, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const nextCursor = rows.length > limit ? (shown.at(-1)?.id ?? null) : null;
  return { data: shown.map(toProto), limit, nextCursor };
}

export function readOffsets(request: { offset?: number | undefined; limit?: number | undefined }) {
  return { offset: request.offset ?? 0, limit: limitOf(request) };
}

function limitOf({ limit = LIMIT_DEFAULT }: { limit?: number | undefined }): number {
  return inRange('limit', limit, LIMITS);
}
