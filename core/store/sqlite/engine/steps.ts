/**
 * Operations in steps (core/store/operations/steps.ts) on SQLite: each read is answered at once, so
 * an operation runs to its end without suspending.
 */
import type { InSteps, Read, Steps } from '../../operations/steps.ts';

/** What a statement has read. */
export function found<Value>(value: Value): Read<Value> {
  return new Found(value);
}

/** The operations as functions. */
export function synchronous<Ops extends object>(operations: InSteps<Ops>): Ops {
  const entries = Object.entries(
    operations as Record<string, (...args: unknown[]) => Steps<unknown>>,
  );
  return Object.fromEntries(
    entries.map(([name, operation]) => [name, (...args: unknown[]) => run(operation(...args))]),
  ) as Ops;
}

export function run<Value>(steps: Steps<Value>): Value {
  const step = steps.next();
  if (!step.done) throw new Error('an operation on SQLite waited for a promise');
  return step.value;
}

/** An iterator that has ended with the value: half the cost of a generator. */
class Found<Value> implements Read<Value>, Iterator<never, Value, unknown> {
  readonly done = true;
  readonly value: Value;

  constructor(value: Value) {
    this.value = value;
  }

  [Symbol.iterator](): this {
    return this;
  }

  /** Its own result, so that nothing else is allocated. */
  next(): this {
    return this;
  }
}
