/**
 * One connection to PostgreSQL, for one operation at a time. Statements are sent at once and
 * executed in their order; several may be under way. A connection that was lost is never used
 * again: a statement of a transaction must not run outside of it, on the next connection.
 */
import postgres from 'postgres';
import { ConnectionLost, readOnly } from './errors.ts';
import { tlsOf } from './tls.ts';

/** In seconds. */
const CONNECT_TIMEOUT_S = 5;
/** In pg_type: int8, int8[], text[]. */
const [INT8, INT8_ARRAY, TEXT_ARRAY] = [20, 1016, 1009];

export type Result = readonly Record<string, unknown>[] & { count: number; command: string };

export type ConnectionOptions = {
  url: string;
  /** Authorities of the server's certificate, in PEM; the system's when absent. */
  ca?: string | undefined;
  /** Behind PgBouncer in transaction mode: no statement stays prepared. */
  isPooled: boolean;
  /** As pg_stat_activity shows it. */
  name: string;
  /** Settings of the session: `name = value`. */
  settings?: readonly string[];
  /**
   * In milliseconds: a connection that has not answered for so long is given up, as when its server
   * is gone without a word. Absent: never.
   */
  answerMaxMs?: number;
};

/** Of the server, as of triggers. */
export type Notice = Readonly<Record<string, string | undefined>>;

/** Of one operation. Ours: more than the rows that one ends. */
const NOTICES_MAX = 10_000;

type Row = Record<string, unknown>;
type Pending = { reject: (error: Error) => void };

const TYPES = {
  int8: { to: INT8, from: [INT8], parse: safeNumber, serialize: String },
  int8Array: { to: INT8_ARRAY, from: [], parse: String, serialize: arrayText },
  textArray: { to: TEXT_ARRAY, from: [], parse: String, serialize: arrayText },
};

export class Connection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #sql: postgres.Sql;
  readonly #pending = new Set<Pending>();
  #reserved: postgres.ReservedSql | undefined;
  readonly #notices: Notice[] = [];
  #onNotify: ((payload: string) => void) | undefined;
  #onLost: (() => void) | undefined;
  #answering: NodeJS.Timeout | undefined;
  isLost = false;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    const ssl = tlsOf(options.url, options.ca);
    this.#sql = postgres(options.url, {
      max: 1,
      prepare: !options.isPooled,
      ...(ssl && { ssl }),
      connect_timeout: CONNECT_TIMEOUT_S,
      idle_timeout: 0,
      max_lifetime: null,
      // It would read the types of arrays at each connect, and end the process when that fails.
      fetch_types: false,
      connection: { application_name: options.name },
      types: TYPES,
      onclose: () => this.#lose(),
      onnotice: (notice: postgres.Notice) => this.#keep(notice as unknown as Notice),
      onnotify: (_channel: string, payload: string) => this.#onNotify?.(payload),
    } as object); // onnotify is missing in the driver's types
  }

  /** Rejects when the server cannot be reached or refuses. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options);
    try {
      await connection.#begin(); // a reservation does not connect
      connection.#reserved = await connection.#sql.reserve();
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Rejects for a replica: the name of the primary may lead there for a time after a failover. */
  async #begin(): Promise<void> {
    const { settings = [] } = this.#options;
    const text = [...settings.map((one) => `SET ${one}`), 'SHOW transaction_read_only'].join('; ');
    const giveUp = setTimeout(() => this.#lose(), CONNECT_TIMEOUT_S * 1_000);
    const results = await this.#sql.unsafe(text).finally(() => clearTimeout(giveUp));
    const row = (settings.length > 0 ? results.at(-1)?.[0] : results[0]) as Row | undefined;
    if (row?.['transaction_read_only'] === 'on') throw readOnly();
  }

  /** A statement with values. `isPlannedAnew`: for these values, and not once for any. */
  send(text: string, values: readonly unknown[], isPlannedAnew = false): Promise<Result> {
    const prepare = !this.#options.isPooled && !isPlannedAnew;
    return this.#sent((sql) => sql.unsafe(text, [...values] as never[], { prepare }));
  }

  /** Statements without values, as one message. */
  command(text: string): Promise<Result> {
    return this.#sent((sql) => sql.unsafe(text).simple());
  }

  #keep(notice: Notice): void {
    if (this.#notices.length < NOTICES_MAX) this.#notices.push(notice);
  }

  /** The notices since the last call. */
  takeNotices(): Notice[] {
    return this.#notices.splice(0);
  }

  onNotify(listener: (payload: string) => void): void {
    this.#onNotify = listener;
  }

  onLost(listener: () => void): void {
    this.#onLost = listener;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    this.isLost = true;
    this.#reserved?.release();
    this.#reserved = undefined;
    await this.#sql.end({ timeout: 1 });
  }

  /** The driver forgets what waits when a connection closes, so it is rejected here. */
  #sent(query: (sql: postgres.ReservedSql) => PromiseLike<unknown>): Promise<Result> {
    const sql = this.#reserved;
    if (sql === undefined || this.isLost) return Promise.reject(lost());
    return new Promise((resolve, reject) => {
      const pending = { reject };
      this.#pending.add(pending);
      this.#watch();
      const answered = (): void => {
        this.#pending.delete(pending);
        this.#watch();
      };
      query(sql).then(
        (result) => {
          answered();
          resolve(result as Result);
        },
        (error: Error) => {
          answered();
          reject(error);
        },
      );
    });
  }

  /** Waits for the next answer, if any. */
  #watch(): void {
    const { answerMaxMs } = this.#options;
    if (answerMaxMs === undefined) return;
    const isWaiting = this.#pending.size > 0 && !this.isLost;
    if (!isWaiting) {
      clearTimeout(this.#answering);
      this.#answering = undefined;
    } else if (this.#answering === undefined) {
      this.#answering = setTimeout(() => this.#lose(), answerMaxMs);
    } else {
      this.#answering.refresh();
    }
  }

  #lose(): void {
    if (this.isLost) return;
    this.isLost = true;
    this.#reserved = undefined;
    clearTimeout(this.#answering);
    for (const { reject } of this.#pending) reject(lost());
    this.#pending.clear();
    this.#onLost?.();
    this.#sql.end({ timeout: 0 }).catch(() => {}); // it is closed; nothing is left to report
  }
}

function lost(): ConnectionLost {
  return new ConnectionLost('the connection to the database was lost');
}

/** As PostgreSQL reads an array. */
function arrayText(values: readonly (string | number)[]): string {
  const members = values.map((value) => `"${String(value).replace(/["\\]/g, '\\$&')}"`);
  return `{${members.join(',')}}`;
}

function safeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is no safe integer`);
  return number;
}
