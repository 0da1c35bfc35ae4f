/**
 * The connection to one function host. Its messages are not trusted: an invalid frame, or one for
 * an unknown run, closes it. Every run settles, whatever happens to the host:
 *
 * RUNNING -> outcome -> done (the thread is free or gone); aborted -> done; host lost -> failed.
 * Without done within a second of an abort or an outcome, the run settles and the host takes no
 * more runs; it is killed when no other run of it is pending. On a loaded machine a healthy host
 * needs longer than a second, and its other runs must not fail for that.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import { onAbort } from '../common/abort.ts';
import { readSlowly } from '../common/flow.ts';
import {
  encode,
  FROM_HOST_MAX_BYTES,
  FrameReader,
  type FromHost,
  LINE_COST_BYTES,
  type LogLine,
  MARKER,
  RUN_MAX_BYTES,
  type ToHost,
} from '../host/messages.ts';
import type { Jailed } from '../jail/jail.ts';
import { type Bundle, putBundle } from './bundle-cache.ts';
import { readHostFrame } from './host-frames.ts';
import type { Broker } from './host-sockets.ts';

/** From the abort of a run, or from its outcome, to the end of its host. */
const KILL_AFTER_MS = 1_000;
/**
 * Memory in use at the end of a run above which a host takes no more runs. Ours: a host at its
 * limit (RLIMIT_DATA) uses about 1,100 MiB, and the next run may crash it (seen).
 */
const RECYCLE_ABOVE_BYTES = 768 * 2 ** 20;
/** Of one run, each once. Ours: a person does not read more. */
const WARNINGS_MAX = 20;
/** Limit of a run's log, including the line that marks the cut. */
const LOG_MAX_BYTES = RUN_MAX_BYTES + Buffer.byteLength(MARKER) + LINE_COST_BYTES;

const NO_SECRETS = '{}';

type HostCommand = Exclude<ToHost, { type: 'abort' }>;
type Running = {
  /** Only the first call counts. */
  settle(outcome: RunOutcome): void;
  isSettled: boolean;
  /** In bytes, as RUN_MAX_BYTES counts them. */
  logBytes: number;
  onLines(lines: LogLine[]): void;
  values: readonly string[];
  warnings: Set<string>;
  listening: Disposable | undefined;
  timer: NodeJS.Timeout | undefined;
  isAborted: boolean;
};

type RunOptions = {
  onLines(lines: LogLine[]): void;
  /** Of secrets: masked in warnings; in the host's own lines the host masks them. */
  values?: readonly string[];
  signal: AbortSignal;
};

type HostDeps = {
  jailed: Jailed;
  /** The host's own directory. */
  dir: string;
  broker: Broker;
  /** Settles when its directory is removed. */
  ended: Promise<void>;
  log: Log;
  /** The last output of the process itself. */
  tail: () => string;
  /** Memory in use, in bytes. */
  memory: () => number;
  /** CPU time of its processes since their start. */
  cpuMs: () => number;
};

/** One host from its first frame to its end. */
export class HostConnection {
  readonly broker: Broker;
  readonly cpuMs: () => number;
  readonly ended: Promise<void>;
  readonly ready: Promise<void>;
  readonly #deps: HostDeps;
  readonly #socket: Socket;
  readonly #running = new Map<string, Running>();
  readonly #onReady: () => void;
  readonly #now = steadyClock();
  #cdpPort = 0;
  #isUsable = true;
  /** Whether a run of it had secrets: its own output is logged no more. */
  #hadSecrets = false;
  #retired: string | undefined;
  /** Hashes of the bundles in its directory, which the runner alone writes. */
  readonly #bundles = new Set<string>();
  /** Runs that have not been sent to the host yet. */
  #preparing = 0;
  #cause: string | undefined;

  constructor(deps: HostDeps, socket: Socket) {
    this.#deps = deps;
    this.#socket = socket;
    this.broker = deps.broker;
    this.cpuMs = deps.cpuMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#onReady = resolve;
    const reader = new FrameReader(FROM_HOST_MAX_BYTES);
    readSlowly(socket, (chunk) => {
      try {
        for (const body of reader.push(chunk)) this.#onMessage(readHostFrame(body));
      } catch (error) {
        this.kill(`it violated the host protocol: ${(error as Error).message}`);
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.kill('its process closed the connection'));
    const exited = deps.jailed.exited.then(({ code, signal }) => {
      socket.destroy();
      const why = deps.jailed.exitReason?.() ?? this.#cause;
      this.#failAll(why ?? `its process ended (${signal ?? `exit ${code}`})`, deps.tail());
    });
    this.ended = Promise.all([exited, deps.ended]).then(() => {});
  }

  /** Runs that hold a thread, including those that only have to settle. */
  runs(): number {
    return this.#running.size;
  }

  /** False once it takes no more runs: it is ending, or ran out of memory once. */
  isUsable(): boolean {
    return this.#isUsable && this.#deps.jailed.exitReason?.() === undefined;
  }

  /** The address of a handler's browser, inside the host. */
  connectUrl(signingKey: string): string {
    return `ws://127.0.0.1:${this.#cdpPort}/?signingKey=${signingKey}`;
  }

  async run(
    order: HostCommand,
    bundle: Bundle,
    { onLines, values = [], signal }: RunOptions,
  ): Promise<RunOutcome> {
    await this.#put(bundle);
    const { promise, resolve: settle } = Promise.withResolvers<RunOutcome>();
    const running: Running = {
      settle: (outcome) => {
        running.isSettled = true;
        settle(outcome);
      },
      isSettled: false,
      logBytes: 0,
      onLines,
      values,
      warnings: new Set(),
      listening: undefined,
      timer: undefined,
      isAborted: false,
    };
    const abort = (): void => {
      running.isAborted = true;
      this.#send({ type: 'abort', id: order.id });
      const cause = 'an invocation did not end when its time was over';
      running.timer ??= setTimeout(() => {
        running.settle({ type: 'aborted' });
        this.#retire(cause);
      }, KILL_AFTER_MS);
    };
    this.#running.set(order.id, running);
    this.#hadSecrets ||= order.type === 'invoke' && order.secretsJson !== NO_SECRETS;
    this.#send(order);
    running.listening = onAbort(signal, abort);
    if (this.#cause !== undefined) this.#failAll(this.#cause, '');
    return promise;
  }

  /** Adds a line to the log of each run: nothing tells which run has caused it. */
  warn(message: string): void {
    for (const running of this.#running.values()) {
      const { warnings, onLines, isSettled, logBytes, values } = running;
      if (isSettled || warnings.has(message) || warnings.size >= WARNINGS_MAX) continue;
      if (logBytes > RUN_MAX_BYTES) continue; // the log is cut
      warnings.add(message);
      const shown = values.reduce((text, value) => text.replaceAll(value, '***'), message);
      onLines([{ level: 'warn', message: shown, timestamp: this.#now() }]);
    }
  }

  /** Kills the host; pending runs fail with this cause. */
  kill(cause: string): void {
    this.#isUsable = false;
    this.#cause ??= cause;
    this.#deps.jailed.kill();
  }

  async #put(bundle: Bundle): Promise<void> {
    if (this.#bundles.has(bundle.sha256)) return;
    this.#preparing += 1;
    try {
      await putBundle(bundle, join(this.#deps.dir, 'fn'));
      this.#bundles.add(bundle.sha256);
    } finally {
      this.#preparing -= 1;
    }
  }

  #send(message: ToHost): void {
    if (this.#socket.writable) this.#socket.write(encode(message));
  }

  /** Takes no more runs; kills the host after the last pending outcome. */
  #retire(cause: string): void {
    this.#isUsable = false;
    this.#retired ??= cause;
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    const isPending = [...this.#running.values()].some(({ isSettled }) => !isSettled);
    if (isPending || this.#preparing > 0) return;
    if (this.#retired !== undefined) this.kill(this.#retired);
  }

  #onMessage(message: FromHost): void {
    if (message.type === 'ready') {
      if (this.#cdpPort !== 0) this.kill('it sent ready twice');
      this.#cdpPort ||= message.cdpPort;
      this.#onReady();
      return;
    }
    const running = this.#running.get(message.id);
    if (running === undefined) this.kill('it sent a message for an unknown invocation');
    else if (message.type === 'log') this.#onLines(running, message.lines);
    else if (message.type === 'done') {
      if (message.retired === 'memory') this.#isUsable = false;
      this.#finish(message.id, running, running.isAborted ? { type: 'aborted' } : NO_OUTCOME);
    } else if (running.isSettled) this.kill('it sent a second outcome');
    else {
      if (this.#deps.memory() > RECYCLE_ABOVE_BYTES) this.#isUsable = false;
      running.settle(running.isAborted ? { type: 'aborted' } : outcomeOf(message));
      const cause = 'an invocation kept its thread after its outcome';
      running.timer ??= setTimeout(() => this.#retire(cause), KILL_AFTER_MS);
      this.#closeIfUnused();
    }
  }

  /** Our host enforces the limit itself; a hostile one would occupy us with frames forever. */
  #onLines(running: Running, lines: LogLine[]): void {
    for (const { message } of lines) {
      running.logBytes += Buffer.byteLength(message) + LINE_COST_BYTES;
    }
    if (running.logBytes > LOG_MAX_BYTES) this.kill('it exceeded the log limit of a run');
    else if (!running.isSettled) running.onLines(lines); // output after the outcome is dropped
  }

  #finish(id: string, running: Running, outcome: RunOutcome): void {
    clearTimeout(running.timer);
    this.#running.delete(id);
    running.listening?.[Symbol.dispose]();
    running.settle(outcome); // no effect after an outcome
    this.#closeIfUnused();
  }

  #failAll(cause: string, said: string): void {
    this.#isUsable = false;
    const { log } = this.#deps;
    const cut = [...this.#running.values()].some(({ isSettled }) => !isSettled);
    const shown = this.#hadSecrets ? 'not shown: it had secrets' : said.slice(-2_000);
    if (cut) log.warn({ cause, said: shown }, 'a function host was lost');
    for (const [id, running] of this.#running) {
      const failure = { ...NO_OUTCOME, message: `the function's process was lost: ${cause}` };
      this.#finish(id, running, running.isAborted ? { type: 'aborted' } : failure);
    }
  }
}

export type Failure = {
  type: 'failure';
  code: 'WORKLOAD_ERROR' | 'INTERNAL_ERROR';
  name: string;
  message: string;
  stack: string;
};
/** How a run ended. `aborted`: by the caller's signal, whatever the handler did then. */
export type RunOutcome =
  | { type: 'result'; json: string | undefined }
  | { type: 'manifests'; json: string }
  | { type: 'aborted' }
  | Failure;

/** A run that ended without an outcome: the tenant's fault unless another cause is known. */
export const NO_OUTCOME: Failure = {
  type: 'failure',
  code: 'WORKLOAD_ERROR',
  name: '',
  message: 'the handler ended without an outcome',
  stack: '',
};

function outcomeOf(message: Exclude<FromHost, { type: 'ready' | 'log' | 'done' }>): RunOutcome {
  if (message.type !== 'error') return message;
  const { name, message: text, stack } = message;
  return { ...NO_OUTCOME, name, message: text, stack };
}
