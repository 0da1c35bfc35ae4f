/** The states of core/store/operations/states.ts as conditions of statements. */

/** `IN ('PENDING', 'RUNNING')` */
export function inStates(states: readonly string[]): string {
  return `IN (${states.map((state) => `'${state}'`).join(', ')})`;
}
