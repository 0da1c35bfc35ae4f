/**
 * Assertions for invariants of the code. A user's mistake is a Fault (proto/rpc/errors.ts) instead.
 */

/** Returns the value, or throws when it is absent. `what` names it: `must(row, 'returned row')`. */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`missing: ${what}`);
  return value;
}

/** Makes a switch over a union exhaustive: a new member fails to compile here. */
export function never(value: never): never {
  throw new Error(`not handled: ${String(value)}`);
}
