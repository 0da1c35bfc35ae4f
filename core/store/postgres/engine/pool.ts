/**
 * The connections for operations: each is used by one operation at a time. A lost one is replaced
 * when the next operation needs it. While the server has no free connection, operations wait for
 * those that the pool has.
 *
 * Operations of one project may wait for locks of each other: they use a part of the connections,
 * and projects are served in turn. Every second turn is of operations without a project, as those
 * of runners and gateways.
 */
import { Fault } from '../../../../proto/rpc/errors.ts';
import { openFairQueue } from '../../../../proto/sharing/fair-queue.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { isFull } from './errors.ts';

/**
 * Ours: with the one for wakes, 8 cores have 96, below the 97 that PostgreSQL gives to its users by
 * default.
 */
const CONNECTIONS_MAX = 11;
/** Ours: the share of one project. */
const PROJECT_MAX = 6;
/** Operations that may wait for a connection. Ours, as of SQLite's thread. */
const WAITING_MAX = 4_096;
/** In milliseconds. Ours: the caller of an operation has left after some more. */
const WAIT_MAX_MS = 15_000;
/** In milliseconds: without attempts to connect after the server had no free connection. Ours. */
const FULL_MS = 1_000;
/** The owner of operations without a project. */
const MACHINES = '';

type Waiter = { resolve: (connection: Promise<Connection>) => void; timer: NodeJS.Timeout };

export class Pool {
  readonly #options: ConnectionOptions;
  readonly #idle: Connection[] = [];
  readonly #waiting = openFairQueue<Waiter>();
  /** How many connections the operations of each project use. */
  readonly #held = new Map<string, number>();
  readonly #owners = new WeakMap<Connection, string>();
  /** Operations that may use a connection, and wait until one is released or none is left. */
  readonly #borrowing: ((connection: Connection | undefined) => void)[] = [];
  #fullUntil = 0;
  #isTurnOfMachines = true;
  #used = 0;
  /** Connections that exist, idle ones included. */
  #open = 0;
  #isClosed = false;
  readonly #drained = Promise.withResolvers<void>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Throws CORE_UNAVAILABLE when too many operations wait or wait too long; the driver's error. */
  acquire(projectId = MACHINES): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(new Fault('DRAINING', 'Shutting down.'));
    if (this.#used < CONNECTIONS_MAX && this.#isAllowed(projectId)) return this.#granted(projectId);
    if (this.#waiting.size >= WAITING_MAX) return Promise.reject(overloaded());
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    const timer = setTimeout(() => {
      if (this.#waiting.remove(projectId, waiter)) reject(overloaded());
    }, WAIT_MAX_MS);
    const waiter = { resolve, timer };
    this.#waiting.push(projectId, waiter);
    return promise;
  }

  release(connection: Connection): void {
    const borrow = connection.isLost ? undefined : this.#borrowing.shift();
    if (connection.isLost) this.#open -= 1;
    else if (borrow) borrow(connection);
    else this.#idle.push(connection);
    if (this.#open === 0) for (const retry of this.#borrowing.splice(0)) retry(undefined);
    this.#free(this.#owners.get(connection) ?? MACHINES);
  }

  /** After everything that was acquired was released. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#used > 0) await this.#drained.promise;
    await Promise.all(this.#idle.splice(0).map((connection) => connection.close()));
  }

  #isAllowed(owner: string): boolean {
    return owner === MACHINES || (this.#held.get(owner) ?? 0) < PROJECT_MAX;
  }

  #granted(owner: string): Promise<Connection> {
    this.#used += 1;
    this.#held.set(owner, (this.#held.get(owner) ?? 0) + 1);
    return this.#next(owner);
  }

  #free(owner: string): void {
    this.#used -= 1;
    const left = (this.#held.get(owner) ?? 0) - 1;
    if (left > 0) this.#held.set(owner, left);
    else this.#held.delete(owner);
    const next = this.#nextWaiter();
    if (next) {
      clearTimeout(next.item.timer);
      next.item.resolve(this.#granted(next.owner));
    } else if (this.#isClosed && this.#used === 0) this.#drained.resolve();
  }

  #nextWaiter(): { owner: string; item: Waiter } | undefined {
    const isTurn = this.#isTurnOfMachines;
    this.#isTurnOfMachines = !isTurn;
    const preferred = (owner: string) => (owner === MACHINES) === isTurn && this.#isAllowed(owner);
    return this.#waiting.shift(preferred) ?? this.#waiting.shift((one) => this.#isAllowed(one));
  }

  async #next(owner: string): Promise<Connection> {
    try {
      const connection = await this.#connected();
      this.#owners.set(connection, owner);
      return connection;
    } catch (error) {
      this.#free(owner);
      throw error;
    }
  }

  async #connected(): Promise<Connection> {
    for (;;) {
      for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
        if (!idle.isLost) return idle;
        this.#open -= 1;
      }
      const found = this.#isFull() ? undefined : await this.#opened();
      if (found) return found;
      if (this.#idle.length > 0 || this.#open === 0) continue;
      const { promise, resolve } = Promise.withResolvers<Connection | undefined>();
      this.#borrowing.push(resolve);
      const borrowed = await promise;
      if (borrowed) return borrowed;
    }
  }

  #isFull(): boolean {
    return this.#open > 0 && performance.now() < this.#fullUntil;
  }

  /** Undefined when the server has no free connection, but the pool has some. */
  async #opened(): Promise<Connection | undefined> {
    try {
      const connection = await Connection.open(this.#options);
      this.#open += 1;
      return connection;
    } catch (error) {
      if (!isFull(error) || this.#open === 0) throw error;
      this.#fullUntil = performance.now() + FULL_MS;
      return undefined;
    }
  }
}

function overloaded(): Fault {
  return new Fault('CORE_UNAVAILABLE', 'The service is overloaded.');
}
