/** Throws from a few frames down, below a type that a build takes away. */
type Depth = number;

export function fail(depth: Depth): never {
  if (depth > 0) fail(depth - 1);
  throw new TypeError('no such page');
}
