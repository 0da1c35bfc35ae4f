/** Checks of what the console's lists are asked for. Each refusal names the field. Pure. */
import { invalidField } from '../../proto/rpc/errors.ts';
import { inRange, storable } from '../api/checks.ts';
import { pathId } from '../common/ids.ts';
import type { Listed, ListWanted } from '../store/types/console.ts';
import { type CursorOwner, readCursor, writeCursor } from './cursor.ts';

const LIMIT_DEFAULT = 50;
const LIMITS = { min: 1, max: 200 };
/** Ours: longer than any id; a text is compared with some 2,000 rows. */
const TEXT_CHARS = { min: 1, max: 128, unit: ' characters' };

type Asked = {
  text?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
};

/** Throws INVALID_FIELD and INVALID_CURSOR. */
export function listOf(owner: CursorOwner, asked: Asked): ListWanted {
  const { from, to, cursor, limit = LIMIT_DEFAULT } = asked;
  return {
    projectId: owner.projectId,
    limit: inRange('limit', limit, LIMITS),
    text: textOf('text', asked.text),
    ...rangeOf(from, to),
    before: cursor === undefined ? undefined : readCursor(owner, cursor),
  };
}

/** The page's cursor; undefined on the last page. */
export function cursorAfter(owner: CursorOwner, { next }: Listed<unknown>): string | undefined {
  return next && writeCursor(owner, next);
}

/** In the spelling that the store compares: ASCII letters in lower case, as SQLite's lower(). */
export function textOf(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  inRange(field, text.length, TEXT_CHARS);
  return storable(field, text).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** In milliseconds. */
export function rangeOf(from: Date | undefined, to: Date | undefined) {
  const range = { from: from?.getTime() ?? 0, to: to?.getTime() ?? Number.MAX_SAFE_INTEGER };
  if (range.from > range.to) throw invalidField('to', 'must not be before `from`.');
  return range;
}

export function optionalId(field: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : pathId(field, text);
}
