/**
 * Runs operations. Each has a connection of its own, and a transaction unless it is one statement
 * or reads only. Isolation is READ COMMITTED: an operation locks the rows on which it decides. A
 * serialization failure, a deadlock or a lock that is not available repeats the operation, whose
 * arguments are plain values. Nothing is answered before the commit.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Topic } from '../../messages.ts';
import type { Read, Transaction } from '../../operations/steps.ts';
import type { Connection, Notice, Result } from './connection.ts';
import { isReadOnly, isRepeated, toFault } from './errors.ts';
import type { Pool } from './pool.ts';

/** After the first try. Ours. */
const REPEATS_MAX = 3;
/** In milliseconds before a repetition: random, so that two operations do not meet again. */
const REPEAT_MAX_MS = 30;

/** The context of an operation: its statements are sent by `send`. */
export type Tx = Transaction & {
  /** Sends a statement of the running operation at once. */
  send(text: string, values: readonly unknown[], isPlannedAnew?: boolean): Promise<Result>;
  /**
   * Writes immediately before the commit, in the order of the keys: rows that many operations write
   * are locked shortly, and always in the same order. Further writes of one key are run after the
   * first.
   */
  atEnd(key: string, write: () => void): void;
  /** What the running operation remembers under the key; the first call makes it. */
  memory<Value>(key: object, make: () => Value): Value;
};

export type Operation<Args extends unknown[] = never[], Value = unknown> = {
  start: (...args: Args) => Read<Value>;
  isTransaction: boolean;
};

export type Runner = {
  tx: Tx;
  run(name: string, operation: Operation, args: unknown[]): Promise<unknown>;
};

export type RunnerOptions = {
  pool: Pool;
  /** Of that operation; it begins its transaction. */
  beginOf: (name: string) => string;
  /** Each operation is a transaction, also one statement: its limits are set with it. */
  needsTransactions: boolean;
  /** Statements that lock rows before the operation begins. */
  lock: (name: string, args: unknown[]) => void;
  onCommit: (topics: ReadonlySet<Topic>) => void;
  crashPoint: (name: string) => void;
  /** A commit's wait, in milliseconds. */
  onSync: (ms: number) => void;
  /** Receives the notices of what was committed: an undone try tells nothing. */
  onNotice: (notice: Notice) => void;
};

/** One try of an operation. */
class Attempt {
  readonly wakes = new Set<Topic>();
  readonly ends = new Map<string, (() => void)[]>();
  readonly memory = new Map<object, unknown>();
  /** Uses of answers, after the last statement was sent. */
  readonly laters: (() => Read<void>)[] = [];
  /** The first failure of a statement: later ones are its consequences. */
  failure: unknown;
  isCommitting = false;
  /** All statements are answered: no further one may be sent. */
  isOver = false;
  #last: Promise<unknown> = Promise.resolve();
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  send(text: string, values: readonly unknown[], isPlannedAnew?: boolean): Promise<Result> {
    if (this.isOver) throw new Error('a statement after the end of its operation');
    return this.#sent(this.#connection.send(text, values, isPlannedAnew));
  }

  command(text: string): Promise<Result> {
    return this.#sent(this.#connection.command(text));
  }

  /** After all statements that were sent. Throws the first failure. */
  async settle(): Promise<void> {
    await this.#last.catch(() => {});
    if (this.failure !== undefined) throw this.failure;
  }

  #sent(result: Promise<Result>): Promise<Result> {
    this.#last = result;
    result.catch((error: unknown) => {
      this.failure ??= error;
    });
    return result;
  }
}

export function openRunner(options: RunnerOptions): Runner {
  const { pool, beginOf, needsTransactions, lock, onCommit, crashPoint, onSync, onNotice } =
    options;
  let current: Attempt | undefined;
  const running = (): Attempt => {
    if (current === undefined) throw new Error('a statement outside of an operation');
    return current;
  };
  const tx: Tx = {
    send: (text, values, isPlannedAnew) => running().send(text, values, isPlannedAnew),
    wake: (topic) => void running().wakes.add(topic),
    crashPoint,
    later(read, use) {
      running().laters.push(function* () {
        use(yield* read);
      });
    },
    atEnd(key, write) {
      const { ends } = running();
      ends.set(key, [...(ends.get(key) ?? []), write]);
    },
    memory<Value>(key: object, make: () => Value) {
      const { memory } = running();
      if (!memory.has(key)) memory.set(key, make());
      return memory.get(key) as Value;
    },
  };

  /** Statements that the function calls belong to the attempt. */
  function within<Value>(attempt: Attempt, run: () => Value): Value {
    current = attempt;
    try {
      return run();
    } finally {
      current = undefined;
    }
  }

  async function drive(attempt: Attempt, begin: () => Read<unknown>): Promise<unknown> {
    const steps = within(attempt, () => begin()[Symbol.iterator]());
    let step = within(attempt, () => steps.next());
    while (!step.done) {
      const value: unknown = await step.value;
      step = within(attempt, () => steps.next(value));
    }
    return step.value;
  }

  async function useAnswers(attempt: Attempt): Promise<void> {
    attempt.isOver = true;
    for (const use of attempt.laters) await drive(attempt, use);
  }

  async function commit(attempt: Attempt): Promise<void> {
    for (const key of [...attempt.ends.keys()].sort()) {
      for (const write of attempt.ends.get(key) ?? []) within(attempt, write);
    }
    crashPoint('before-commit');
    const at = performance.now();
    attempt.isCommitting = true;
    const committed = attempt.command('COMMIT');
    await attempt.settle();
    if ((await committed).command !== 'COMMIT')
      throw new Error('the transaction was not committed');
    onSync(performance.now() - at);
    crashPoint('after-commit');
  }

  async function once(
    connection: Connection,
    { start, ...operation }: Operation,
    { name, args }: { name: string; args: unknown[] },
  ): Promise<unknown> {
    const attempt = new Attempt(connection);
    const isTransaction = operation.isTransaction || needsTransactions;
    const begin = () => {
      lock(name, args);
      return start(...(args as never[]));
    };
    try {
      if (isTransaction) attempt.command(beginOf(name)).catch(() => {}); // kept as `failure`
      if (isTransaction) crashPoint('tx-begin');
      const value = await drive(attempt, begin);
      if (isTransaction) await commit(attempt);
      else await attempt.settle();
      await useAnswers(attempt);
      onCommit(attempt.wakes);
      for (const notice of connection.takeNotices()) onNotice(notice);
      return value;
    } catch (error) {
      if (isTransaction && !connection.isLost) await connection.command('ROLLBACK').catch(() => {});
      connection.takeNotices();
      const cause = attempt.failure ?? error;
      if (isReadOnly(cause)) await connection.close(); // the next one may lead to the primary
      throw isRepeated(cause) ? cause : toFault(cause, attempt.isCommitting);
    }
  }

  async function run(name: string, operation: Operation, args: unknown[]): Promise<unknown> {
    for (let repeats = 0; ; repeats += 1) {
      const connection = await pool.acquire(projectOf(args)).catch((error: unknown) => {
        throw toFault(error, false);
      });
      try {
        return await once(connection, operation, { name, args });
      } catch (error) {
        if (!isRepeated(error)) throw error;
        if (repeats === REPEATS_MAX) throw toFault(error, false);
      } finally {
        pool.release(connection);
      }
      await sleep(Math.random() * REPEAT_MAX_MS);
    }
  }

  return { tx, run };
}

/** The project whose user waits for the operation, if any. */
function projectOf([wanted]: unknown[]): string | undefined {
  if (typeof wanted !== 'object' || wanted === null || !('projectId' in wanted)) return undefined;
  const { projectId } = wanted;
  return typeof projectId === 'string' && projectId !== '' ? projectId : undefined;
}
