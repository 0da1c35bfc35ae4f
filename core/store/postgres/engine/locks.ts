/**
 * Advisory locks, which belong to one database: their numbers spell `tabern`, then what they lock.
 */
const BASE = 0x7461_6265_0000;

export const LOCKS = {
  /** Held while migrations run. */
  migrations: BASE + 1,
  /** Held by the leader among the cores, by its direct connection. */
  leader: BASE + 2,
  /** Held by a claim of deliveries until its commit. */
  claims: BASE + 3,
  /** Held by each running core, shared, by its direct connection. */
  cores: BASE + 4,
} as const;
