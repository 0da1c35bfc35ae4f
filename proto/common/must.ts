/**
 * Asserts for what our own code guarantees. A user's mistake is a Fault (proto/rpc/errors.ts),
 * never this.
 */

/**
 * Gives the value back, or throws when our own code broke its promise. `what` names it: `must(row,
 * 'returned row')`.
 */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`missing: ${what}`);
  return value;
}

/** Makes a switch over one of our unions complete: a new member fails to compile here. */
export function never(value: never): never {
  throw new Error(`not handled: ${String(value)}`);
}
