/**
 * The reserve of a runner's places: some of each kind are only for projects that hold none, so that
 * a project within its limits does not keep the others waiting until its work ends. It counts while
 * more than one project has a key: one alone has all places.
 */

/** Ours: what a project that is busy alone does without, for others whose work comes at once. */
const RESERVED_PART = 8;

/** Of the places of a kind. A single place is not reserved: no project with work could take it. */
export function reserveOf(places: number): number {
  return places > 1 ? Math.max(1, Math.floor(places / RESERVED_PART)) : 0;
}
