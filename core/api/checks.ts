/** Checks that several services make on requests and stored rows, with the faults they throw. */
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';

/** A date, or a date and time with its zone. */
const ISO_8601 = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/;

export type Range = { min?: number; max: number; unit?: string };

/** The value. Throws INVALID_FIELD outside of the range; both bounds are within it. */
export function inRange(field: string, value: number, { min = 0, max, unit = '' }: Range): number {
  if (value >= min && value <= max) return value;
  throw invalidField(field, `must be ${min} to ${max}${unit}.`);
}

/** The value, which is one of them; `usual` when it is absent. Throws INVALID_FIELD. */
export function oneOf<T extends string>(
  field: string,
  value: string | undefined,
  { all, usual }: { all: readonly T[]; usual: T },
): T {
  if (value === undefined) return usual;
  const found = all.find((one) => one === value);
  if (found === undefined) throw invalidField(field, `must be one of ${all.join(', ')}.`);
  return found;
}

/** In Unix milliseconds. Throws INVALID_FIELD. */
export function timeOf(field: string, text: string): number {
  const at = ISO_8601.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw invalidField(field, 'must be an ISO 8601 time with its zone.');
  return at;
}

/** The row. Throws RESOURCE_NOT_FOUND for undefined. */
export function orNotFound<T>(row: T | undefined, type: string, id: string): T {
  if (row === undefined) throw notFound(type, id);
  return row;
}

/** Throws PROJECT_MISMATCH when the request names a project other than the API key's. */
export function checkProject(named: string | undefined, projectId: string): void {
  if (named === undefined || named === projectId) return;
  const facts = { projectId: named };
  throw new Fault('PROJECT_MISMATCH', 'This API key cannot access the given project.', facts);
}

/** In milliseconds after a session's end: its runner may send its files. Source: runners.proto. */
export const LATE_MS = 600_000;

/**
 * Throws unless the blob was added: LEASE_LOST, or INVALID_FIELD when the blob is not a `what` of
 * the lease.
 */
export function checkAdded(
  outcome: 'added' | 'lost' | 'refused',
  { leaseId, what }: { leaseId: string; what: string },
): void {
  if (outcome === 'lost') throw leaseLost(leaseId);
  if (outcome === 'refused') {
    throw invalidField('blobId', `must be a ${what} written under this lease.`);
  }
}

export function leaseLost(leaseId: string): Fault {
  return new Fault('LEASE_LOST', 'The lease is lost or has ended.', { leaseId });
}

export function invalidCursor(): Fault {
  return new Fault('INVALID_CURSOR', '`cursor` is not valid.', { field: 'cursor' });
}

/** PostgreSQL stores no text with U+0000: it is refused whatever the engine is. */
export function storable(field: string, text: string): string {
  if (text.includes('\0')) throw invalidField(field, 'must not contain U+0000.');
  return text;
}
