/**
 * The reserve of a runner's places: some of each kind that only projects take which hold none, so
 * that a project within its limits does not keep the others waiting until its work ends. It counts
 * while more than one project has a key: one alone has all places.
 */
import type { WorkKind } from '../../types/leases.ts';
import type { Tx } from '../engine/transaction.ts';

/** Ours: what a project that is busy alone does without, against newcomers that come at once. */
const RESERVED_PART = 8;

/** Of the places of a kind. None of a single one, or nobody who has work could ever take it. */
export function reserveOf(places: number): number {
  return places > 1 ? Math.max(1, Math.floor(places / RESERVED_PART)) : 0;
}

export type Places = {
  /** Whether what the runner has free of that kind is within its reserve. */
  isReserved(wanted: { kind: WorkKind; runnerId: string; places: number }): boolean;
};

export function placesOf({ db }: Tx): Places {
  // Index jobs_by_runner. Counted here, as a runner's poll is as wide as when it began.
  const held = db
    .prepare<[string, string], number>(`
      SELECT COUNT(*) FROM jobs WHERE runner_id = ? AND kind = ? AND state = 'running'`)
    .pluck();
  const several = db
    .prepare<[], number>(`
      SELECT EXISTS (SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND project_id <>
        (SELECT project_id FROM api_keys WHERE revoked_at IS NULL LIMIT 1))`)
    .pluck();
  return {
    isReserved({ kind, runnerId, places }) {
      const reserve = reserveOf(places);
      if (reserve === 0) return false;
      const free = places - (held.get(runnerId, kind) ?? 0);
      return free <= reserve && several.get() === 1;
    },
  };
}
