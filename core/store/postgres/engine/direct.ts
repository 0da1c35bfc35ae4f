/**
 * What needs a connection of its own for as long as core runs: wakes and messages between cores,
 * and the lock of the leader. They are sent by NOTIFY outside of transactions: a transaction with
 * NOTIFY holds a lock of the whole server until its commit. Wakes of 20 ms are sent together. A
 * wake may be lost with a core or a connection, so listeners are also called at intervals.
 */
import type { Log } from '../../../../proto/common/log.ts';
import { periodically } from '../../../common/periodically.ts';
import type { CoreMessageKind, Topic } from '../../messages.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { LOCKS } from './locks.ts';
import type { Wakes } from './wakes.ts';

const CHANNEL = 'tabern_wakes';
/** In milliseconds. */
const SEND_MS = 20;
/** In milliseconds: between attempts to connect, and to become the leader. */
const LOOK_MS = 1_000;
/** In milliseconds: without an answer for so long, another core may be the leader. */
const ANSWER_MAX_MS = 3_000;
/**
 * The server ends a connection without a question for so long, with its lock: that of a core that
 * stands still, or whose machine is gone. A core that lives has given it up before.
 */
const SETTINGS = [`idle_session_timeout = ${ANSWER_MAX_MS + LOOK_MS}`];
/** In bytes; PostgreSQL allows 8,000. */
const PAYLOAD_MAX = 7_000;

export type Direct = AsyncDisposable & {
  /** Wakes listeners of other cores. */
  send(topics: Iterable<Topic>): void;
  /** As core/store/types.ts. */
  sendToCores(kind: CoreMessageKind, content: string): void;
  onCoreMessage(kind: CoreMessageKind, listener: (content: string) => void): void;
  isLeader(): boolean;
  /** As core/store/types.ts. */
  lineLostMs(): number;
};

export type DirectOptions = {
  connection: ConnectionOptions;
  /** The name of the setting that has the URL. */
  setting: string;
  /** Of this core: its own wakes are not repeated. */
  coreId: string;
  wakes: Wakes;
  log: Log;
};

type Message = { from: string } & (
  | { topics: Topic[] }
  | { kind: CoreMessageKind; content: string }
);

export async function openDirect(options: DirectOptions): Promise<Direct> {
  const line = new Line(options);
  await line.look();
  const looking = periodically(LOOK_MS, () => line.look(), {
    log: options.log,
    failure: `the connection of ${options.setting} for wakes failed`,
  });
  return {
    send: (topics) => line.add(topics),
    sendToCores: (kind, content) => line.tell(kind, content),
    onCoreMessage: (kind, listener) => void line.listeners.set(kind, listener),
    isLeader: () => line.isLeader,
    lineLostMs: () => line.lostMs,
    async [Symbol.asyncDispose]() {
      await looking[Symbol.asyncDispose]();
      await line.close();
    },
  };
}

class Line {
  readonly #options: DirectOptions;
  readonly #topics = new Set<Topic>();
  #connection: Connection | undefined;
  #sending: NodeJS.Timeout | undefined;
  readonly listeners = new Map<CoreMessageKind, (content: string) => void>();
  isLeader = false;
  #lostAt: number | undefined;

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  add(topics: Iterable<Topic>): void {
    for (const topic of topics) this.#topics.add(topic);
    if (this.#topics.size === 0) return;
    this.#sending ??= setTimeout(() => this.#send(), SEND_MS).unref();
  }

  tell(kind: CoreMessageKind, content: string): void {
    const payload = JSON.stringify({ from: this.#options.coreId, kind, content });
    if (Buffer.byteLength(payload) > PAYLOAD_MAX) {
      throw new RangeError(`a message of the kind ${kind} exceeds ${PAYLOAD_MAX} bytes`);
    }
    this.#notify(payload);
  }

  /** Connects if necessary, asks for the leader's lock, and wakes what may have missed a wake. */
  async look(): Promise<void> {
    try {
      if (this.#connection === undefined) await this.#connect();
      await this.#elect();
    } finally {
      this.#options.wakes.tick();
    }
  }

  get lostMs(): number {
    return this.#lostAt === undefined ? 0 : performance.now() - this.#lostAt;
  }

  async close(): Promise<void> {
    clearTimeout(this.#sending);
    this.#send();
    await this.#connection?.close();
    this.isLeader = false;
  }

  async #connect(): Promise<void> {
    const { connection: options, wakes } = this.#options;
    await using opened = new AsyncDisposableStack();
    const timed = { ...options, settings: SETTINGS, answerMaxMs: ANSWER_MAX_MS };
    const connection = opened.use(await Connection.open(timed));
    connection.onNotify((payload) => this.#receive(payload));
    connection.onLost(() => {
      if (this.#connection === connection) this.#lostAt = performance.now();
      this.#connection = undefined;
      this.isLeader = false;
      wakes.isComplete = false;
    });
    await connection.command(`LISTEN ${CHANNEL}`);
    await connection.send('SELECT pg_advisory_lock_shared($1)', [LOCKS.cores]);
    if (connection.isLost) return;
    opened.move();
    this.#connection = connection;
    this.#lostAt = undefined;
    wakes.isComplete = true;
    wakes.all();
  }

  async #elect(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) return;
    const [row] = await connection.send(
      'SELECT CASE WHEN $1 THEN TRUE ELSE pg_try_advisory_lock($2) END AS "isLeader"',
      [this.isLeader, LOCKS.leader],
    );
    if (this.#connection !== connection) return;
    this.isLeader = row?.['isLeader'] === true;
  }

  #send(): void {
    this.#sending = undefined;
    const topics = [...this.#topics];
    this.#topics.clear();
    for (const payload of payloads(this.#options.coreId, topics)) this.#notify(payload);
  }

  /** It may be lost: a wake is repeated by the receivers' interval, a message by its sender. */
  #notify(payload: string): void {
    this.#connection?.send('SELECT pg_notify($1, $2)', [CHANNEL, payload]).catch(() => {});
  }

  #receive(payload: string): void {
    const message = messageIn(payload);
    if (message === undefined) return;
    const isOwn = message.from === this.#options.coreId;
    if ('kind' in message) {
      try {
        if (!isOwn) this.listeners.get(message.kind)?.(message.content);
      } catch {
        // the content is of another program, or of a version with other messages
      }
      return;
    }
    for (const topic of message.topics) {
      // An event is listed after all transactions that are older, which may end after its wake.
      if (!isOwn || topic.startsWith('events:')) this.#options.wakes.wake(topic);
    }
  }
}

/** Undefined for that of another program: any of the database may use the channel. */
function messageIn(payload: string): Message | undefined {
  try {
    const message = JSON.parse(payload) as Message;
    if ('kind' in message) return typeof message.content === 'string' ? message : undefined;
    return { from: message.from, topics: [...message.topics].map(String) as Topic[] };
  } catch {
    return undefined;
  }
}

function payloads(from: string, topics: Topic[]): string[] {
  const all: string[] = [];
  let part: Topic[] = [];
  let size = 0;
  for (const topic of topics) {
    if (size + topic.length > PAYLOAD_MAX) {
      all.push(JSON.stringify({ from, topics: part }));
      part = [];
      size = 0;
    }
    part.push(topic);
    size += topic.length + 3;
  }
  if (part.length > 0) all.push(JSON.stringify({ from, topics: part }));
  return all;
}
