/**
 * Operations in steps (core/store/operations/steps.ts) on PostgreSQL: each read is a promise, and
 * the operation continues with its value.
 */
import type { Read } from '../../operations/steps.ts';
import type { Operation } from './transaction.ts';

type Functions = Record<string, (...args: never[]) => Read<unknown>>;

/** The operations of functions that read in steps. */
export type OperationsOf<Ops extends Functions> = {
  [Name in keyof Ops]: Ops[Name] extends (...args: infer Args) => Read<infer Value>
    ? Operation<Args, Value>
    : never;
};

/** What an engine brings for operations: each gives its value in steps. */
export type InReads<Ops> = {
  [Name in keyof Ops]: Ops[Name] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Read<Value>
    : never;
};

/** Each is one transaction. */
export function asynchronous<Ops extends Functions>(operations: Ops): OperationsOf<Ops> {
  return withMode(operations, true);
}

/** Each is one statement, or reads only: without a transaction around it. */
export function withoutTransaction<Ops extends Functions>(operations: Ops): OperationsOf<Ops> {
  return withMode(operations, false);
}

function withMode<Ops extends Functions>(operations: Ops, isTransaction: boolean) {
  const entries = Object.entries(operations).map(([name, start]) => [
    name,
    { start, isTransaction },
  ]);
  return Object.fromEntries(entries) as OperationsOf<Ops>;
}

/** A value that needs no statement. */
export function found<Value>(value: Value): Read<Value> {
  return {
    // biome-ignore lint/correctness/useYield: it has ended
    *[Symbol.iterator]() {
      return value;
    },
  };
}

/** The value of an answer that is under way. */
export function answered<Answer, Value>(
  answer: Promise<Answer>,
  pick: (answer: Answer) => Value,
): Read<Value> {
  answer.catch(() => {}); // the operation keeps the first failure
  return {
    *[Symbol.iterator]() {
      return pick((yield answer) as Answer);
    },
  };
}

/** The read, with its value changed. The statement is under way. */
export function mapped<Value, Next>(read: Read<Value>, change: (value: Value) => Next): Read<Next> {
  return {
    *[Symbol.iterator]() {
      return change(yield* read);
    },
  };
}
