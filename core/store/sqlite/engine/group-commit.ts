/**
 * Group commit: many operations in one transaction, each in a savepoint, so that a failed operation
 * does not undo the others. Answers and wakes follow the commit, which waits for the disk unless
 * every operation of the group is in UNPROMISED.
 */
import type { Database, Statement } from 'better-sqlite3';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { type Answer, type OpRequest, type Topic, toPlain } from '../../messages.ts';
import { later } from './steps.ts';
import type { Tx } from './transaction.ts';

/** The end of one group. `fatal`: its state on disk is unknown. */
export type GroupOutcome =
  | { kind: 'committed'; answers: Answer[]; wakes: Topic[] }
  | { kind: 'fatal'; message: string };

/**
 * Operations that a power loss may undo. A lost offer of work is repeated, and the runner's first
 * renewal waits for the disk. Each invocation waits for the disk twice, not three times, before its
 * handler starts.
 */
const UNPROMISED: ReadonlySet<string> = new Set(['leaseWork']);

/** Sets core's clock: later operations carry the new times. */
const MOVE = 'moveTimes';

type AnyOp = (...args: unknown[]) => unknown;

/** As SQLite numbers it. */
const FULL = 2;

export class Engine {
  readonly operations: string[];
  readonly #db: Database;
  readonly #ops: ReadonlyMap<string, AnyOp>;
  readonly #crashPoint: (name: string) => void;
  readonly #sql: Record<'begin' | 'commit' | 'savepoint' | 'release' | 'undo', Statement>;
  /** In milliseconds: the last commit's wait for the disk; undefined without one. */
  syncMs: number | undefined;
  /** Each commit waits for the disk. */
  readonly #isFull: boolean;
  /** Clock steps that the stored times include. */
  #step = 0;
  /** Of the current operation. */
  #wakes: Topic[] = [];

  constructor(db: Database, crashPoint: (name: string) => void, makeOps: (tx: Tx) => object) {
    this.#db = db;
    this.#crashPoint = crashPoint;
    const wake = (topic: Topic) => void this.#wakes.push(topic);
    const ops = makeOps({ db, crashPoint, wake, later });
    this.#ops = new Map(Object.entries(ops) as [string, AnyOp][]);
    this.operations = [...this.#ops.keys()];
    this.#isFull = db.pragma('synchronous', { simple: true }) === FULL;
    this.#sql = {
      begin: db.prepare('BEGIN IMMEDIATE'),
      commit: db.prepare('COMMIT'),
      savepoint: db.prepare('SAVEPOINT op'),
      release: db.prepare('RELEASE op'),
      undo: db.prepare('ROLLBACK TO op'),
    };
  }

  /** Runs the group in one transaction. */
  run(group: readonly OpRequest[]): GroupOutcome {
    const isPromised = !group.every(({ op }) => UNPROMISED.has(op));
    if (!this.#isFull || isPromised) {
      const outcome = this.#run(group);
      if (!this.#isFull) this.syncMs = undefined;
      return outcome;
    }
    // the next commit that waits for the disk writes this one too: it is earlier in the log
    this.#db.pragma('synchronous = NORMAL');
    try {
      return this.#run(group);
    } finally {
      this.syncMs = undefined;
      // cannot be set within a transaction: the commit has failed, and the process ends
      if (!this.#db.inTransaction) this.#db.pragma('synchronous = FULL');
    }
  }

  #run(group: readonly OpRequest[]): GroupOutcome {
    const wakes = new Set<Topic>();
    const step = this.#step;
    let answers: Answer[];
    try {
      this.#sql.begin.run();
      this.#crashPoint('tx-begin');
      answers = group.map((request) => this.#one(request, wakes));
    } catch (error) {
      this.#step = step;
      return this.#undone(group, error);
    }
    try {
      this.#crashPoint('before-commit');
      const committingAt = performance.now();
      this.#sql.commit.run();
      this.syncMs = performance.now() - committingAt;
      this.#crashPoint('after-commit');
    } catch (error) {
      // The log has no room for the transaction's last frame: nothing is committed.
      this.#step = step;
      if (isFull(error)) return this.#undone(group, error);
      return { kind: 'fatal', message: `commit failed: ${text(error)}` };
    }
    return { kind: 'committed', answers, wakes: [...wakes] };
  }

  #one({ id, op, args, step = this.#step }: OpRequest, wakes: Set<Topic>): Answer {
    this.#wakes = [];
    this.#sql.savepoint.run();
    try {
      const run = this.#ops.get(op);
      if (!run) throw new Error(`no operation ${op}`);
      if (step !== this.#step && op !== MOVE) throw ofOtherStep();
      const value = run(...args);
      this.#sql.release.run();
      this.#step = step;
      for (const topic of this.#wakes) wakes.add(topic);
      return { id, value };
    } catch (error) {
      if (!this.#db.inTransaction || isDamage(error)) throw error;
      this.#sql.undo.run();
      this.#sql.release.run();
      return { id, error: toPlain(isFull(error) ? storageFull() : error) };
    }
  }

  /**
   * The transaction was not committed. After a full disk everything is rolled back, and each call
   * fails with STORAGE_FULL; damage is fatal.
   */
  #undone(group: readonly OpRequest[], error: unknown): GroupOutcome {
    if (!isFull(error)) return { kind: 'fatal', message: `transaction failed: ${text(error)}` };
    if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
    const answers = group.map(({ id }) => ({ id, error: toPlain(storageFull()) }));
    return { kind: 'committed', answers, wakes: [] };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

export function isFull(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_FULL';
}

function isDamage(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(codeOf(error));
}

export function storageFull(): Fault {
  return new Fault('STORAGE_FULL', 'The disk is full.');
}

/** The operation's times include another number of clock steps than the stored times. */
function ofOtherStep(): Fault {
  return new Fault('CORE_UNAVAILABLE', 'The clock is being set. Try again.');
}

function text(error: unknown): string {
  return error instanceof Error ? `${codeOf(error)} ${error.message}`.trim() : String(error);
}
