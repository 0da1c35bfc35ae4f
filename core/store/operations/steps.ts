/**
 * The form of an operation: a generator over the statements of an engine, so that one text of the
 * rules serves a synchronous and an asynchronous engine. A statement that reads gives a `Read`, and
 * `yield*` its value. A statement that writes gives nothing: an engine runs writes in their order,
 * and a write that fails fails the transaction.
 *
 * SQLite (core/store/sqlite/engine/steps.ts) answers a read at once: operations never suspend.
 * PostgreSQL yields a promise for each read; statements are sent when they are called, and those
 * between two waits together. So an operation calls its reads before it waits for the first.
 */
import type { Topic } from '../messages.ts';

export type Read<Value> = {
  [Symbol.iterator](): Iterator<Promise<unknown>, Value, unknown>;
};

/**
 * A value made of answers; their statements are called before. `make` is no closure: the first call
 * of each new generator function costs 3 us.
 */
export function made<Args extends unknown[], Value>(
  make: (...args: Args) => Steps<Value>,
  ...args: Args
): Read<Value> {
  return { [Symbol.iterator]: () => make(...args) };
}

/** A value that needs no statement. */
// biome-ignore lint/correctness/useYield: it has ended
export function* known<Value>(value: Value): Steps<Value> {
  return value;
}

export type Steps<Value> = Generator<Promise<unknown>, Value, unknown>;

/** The same operations in steps. */
export type InSteps<Ops> = {
  [Name in keyof Ops]: Ops[Name] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Steps<Value>
    : never;
};

/** The context of an operation beside its statements. */
export type Transaction = {
  /** Wakes the topic's listeners after the commit, unless the operation is undone. */
  wake(topic: Topic): void;
  /**
   * Uses the value before the operation resolves. It is not waited for now, so that an engine may
   * commit with the statement: no statement depends on it. Not the call of a generator, whose
   * statements are not sent yet.
   */
  later<Value>(read: Read<Value>, use: (value: Value) => void): void;
  /** A named point at which a fault test may end the process. */
  crashPoint(name: string): void;
};
