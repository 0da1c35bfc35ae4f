/**
 * Cursors of the console's lists: the place of the last row that a call examined, as text. A cursor
 * is bound to its project and its list; it is not secret, and a changed one selects another place
 * of the same list. Pure.
 */
import { createHash } from 'node:crypto';
import { invalidCursor } from '../api/checks.ts';
import type { Position } from '../store/types/console.ts';

/** Of one list of one project. */
export type CursorOwner = { projectId: string; list: string };

/** Milliseconds in base 36, and the id of a row: a UUID, or two. */
const CURSOR = /^([0-9a-f]{8})\.([0-9a-z]{1,11})\.([0-9a-f-]{0,36}(?:_[0-9a-f-]{36})?)$/;

export function writeCursor(owner: CursorOwner, { at, id }: Position): string {
  return Buffer.from(`${tagOf(owner)}.${at.toString(36)}.${id}`).toString('base64url');
}

/** Throws INVALID_CURSOR, also for a cursor of another project or list. */
export function readCursor(owner: CursorOwner, text: string): Position {
  const [, tag, at, id] = CURSOR.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  if (tag !== tagOf(owner) || at === undefined || id === undefined) throw invalidCursor();
  return { at: Number.parseInt(at, 36), id };
}

function tagOf({ projectId, list }: CursorOwner): string {
  return createHash('sha256').update(`${projectId}/${list}`).digest('hex').slice(0, 8);
}
