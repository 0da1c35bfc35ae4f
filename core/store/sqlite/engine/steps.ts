/**
 * Operations in steps (core/store/operations/steps.ts) on SQLite: each read is answered at once, so
 * an operation runs to its end without suspending.
 */
import type { Read, Steps } from '../../operations/steps.ts';

/** The value of a statement. */
export function found<Value>(value: Value): Read<Value> {
  return new Found(value);
}

type Operations = Record<string, (...args: never[]) => Steps<unknown>>;

/** The operations as functions. */
type Synchronous<Ops extends Operations> = {
  [Name in keyof Ops]: Ops[Name] extends (...args: infer Args) => Steps<infer Value>
    ? (...args: Args) => Value
    : never;
};

export function synchronous<Ops extends Operations>(operations: Ops): Synchronous<Ops> {
  const entries = Object.entries(operations).map(([name, operation]) => [
    name,
    (...args: never[]) => run(operation(...args)),
  ]);
  return Object.fromEntries(entries) as Synchronous<Ops>;
}

export function run<Value>(steps: Steps<Value>): Value {
  const step = steps.next();
  if (!step.done) throw new Error('an operation on SQLite waited for a promise');
  return step.value;
}

/** Each value is there at once. */
export function later<Value>(read: Read<Value>, use: (value: Value) => void): void {
  const { done, value } = read[Symbol.iterator]().next();
  if (done) use(value);
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
