/** Limits that two of core, gateway and runner share. What one side alone keeps stands there. */

/** Of any quota of a project: MiB, or a count. Ours: 95 TiB. */
export const QUOTA_MAX = 100_000_000;
