/**
 * The conversation with one function host. Nothing it says is trusted: an invalid frame, or one for
 * a run that it does not have, ends it. Every run settles, whatever becomes of the host:
 *
 * RUNNING -> outcome -> done (the thread is free or gone); aborted -> done; host lost -> failed.
 * No done within a second of an abort or an outcome: the run is over, and the host takes no more
 * runs and is killed when no other run of it waits for an outcome. On a loaded machine a good host
 * needs longer than a second, and its other runs must not pay for that.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { readSlowly } from '../common/flow.ts';
import { LINE_COST_BYTES, MARKER, RUN_MAX_BYTES } from '../host/limits.ts';
import {
  encode,
  FROM_HOST_MAX_BYTES,
  FrameReader,
  type FromHost,
  type LogLine,
  type ToHost,
} from '../host/messages.ts';
import type { Jailed } from '../jail/jail.ts';
import type { Broker } from './browser-broker.ts';
import { type Bundle, putBundle } from './bundle-cache.ts';
import { readHostFrame } from './host-frames.ts';

/** From the abort of a run, or from its outcome, to the end of its host. */
const KILL_AFTER_MS = 1_000;
/**
 * Of memory in use at the end of a run: who has so much takes no more runs. Ours: one that came to
 * its limit (RLIMIT_DATA) has about 1,100 MiB, and the next run may crash it (seen).
 */
const RECYCLE_ABOVE_BYTES = 768 * 2 ** 20;
/** What a run's log may have, and the line that says that it is cut. */
const LOG_MAX_BYTES = RUN_MAX_BYTES + Buffer.byteLength(MARKER) + LINE_COST_BYTES;

type HostCommand = Exclude<ToHost, { type: 'abort' }>;
type Running = {
  /** Counts once. */
  settle(outcome: RunOutcome): void;
  isSettled: boolean;
  /** In bytes, as RUN_MAX_BYTES counts them. */
  logBytes: number;
  dispose(): void;
  onLines(lines: LogLine[]): void;
  timer: NodeJS.Timeout | undefined;
  isAborted: boolean;
};

export type HostProcess = {
  readonly broker: Broker;
  /** Runs that hold a thread, those that only have to settle included. */
  runs(): number;
  /** False once it shall take no more runs: it is ending, or ran out of memory once. */
  isUsable(): boolean;
  /** Where a handler connects to for its browser. */
  connectUrl(signingKey: string): string;
  run(order: HostCommand, bundle: Bundle, options: RunOptions): Promise<RunOutcome>;
  /** CPU time of its processes since their start. */
  readonly cpuMs: () => number;
  /** Ends it now; what runs fails with this cause. */
  kill(cause: string): void;
  ended: Promise<void>;
};
export type RunOptions = { onLines(lines: LogLine[]): void; signal: AbortSignal };

type HostDeps = {
  jailed: Jailed;
  /** The host's own. */
  dir: string;
  broker: Broker;
  /** When its directory is gone. */
  ended: Promise<void>;
  log: Log;
  /** What the process itself printed last. */
  tail: () => string;
  /** In bytes, what it uses now. */
  memory: () => number;
  cpuMs: () => number;
};

/** One host from its first frame to its end. */
export class HostConnection implements HostProcess {
  readonly broker: Broker;
  readonly cpuMs: () => number;
  readonly ended: Promise<void>;
  readonly ready: Promise<void>;
  readonly #deps: HostDeps;
  readonly #socket: Socket;
  readonly #running = new Map<string, Running>();
  readonly #onReady: () => void;
  #cdpPort = 0;
  #isUsable = true;
  #retired: string | undefined;
  /** Runs that are not told to the host yet. */
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
        this.kill(`it broke the protocol of its host: ${(error as Error).message}`);
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.kill('its process closed the connection'));
    const exited = deps.jailed.exited.then(({ code, signal }) => {
      socket.destroy();
      const why = deps.jailed.why?.() ?? this.#cause;
      this.#failAll(why ?? `its process ended (${signal ?? `exit ${code}`})`, deps.tail());
    });
    this.ended = Promise.all([exited, deps.ended]).then(() => {});
  }

  runs(): number {
    return this.#running.size;
  }

  isUsable(): boolean {
    return this.#isUsable && this.#deps.jailed.why?.() === undefined;
  }

  connectUrl(signingKey: string): string {
    return `ws://127.0.0.1:${this.#cdpPort}/?signingKey=${signingKey}`;
  }

  async run(
    order: HostCommand,
    bundle: Bundle,
    { onLines, signal }: RunOptions,
  ): Promise<RunOutcome> {
    this.#preparing += 1;
    await putBundle(bundle, join(this.#deps.dir, 'fn')).finally(() => {
      this.#preparing -= 1;
    });
    const { promise, resolve: settle } = Promise.withResolvers<RunOutcome>();
    const running: Running = {
      settle: (outcome) => {
        running.isSettled = true;
        settle(outcome);
      },
      isSettled: false,
      logBytes: 0,
      onLines,
      dispose: () => signal.removeEventListener('abort', abort),
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
    this.#send(order);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    if (this.#cause !== undefined) this.#failAll(this.#cause, '');
    return promise;
  }

  kill(cause: string): void {
    this.#isUsable = false;
    this.#cause ??= cause;
    this.#deps.jailed.kill();
  }

  #send(message: ToHost): void {
    if (this.#socket.writable) this.#socket.write(encode(message));
  }

  /** Takes no more runs; ends with the last outcome that is waited for. */
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
      if (this.#cdpPort !== 0) this.kill('it said ready twice');
      this.#cdpPort ||= message.cdpPort;
      this.#onReady();
      return;
    }
    const running = this.#running.get(message.id);
    if (running === undefined) this.kill('it spoke for an invocation that is not its own');
    else if (message.type === 'log') this.#onLines(running, message.lines);
    else if (message.type === 'done') {
      if (message.retired === 'memory') this.#isUsable = false;
      this.#finish(message.id, running, running.isAborted ? { type: 'aborted' } : NO_OUTCOME);
    } else if (running.isSettled) this.kill('it told a second outcome');
    else {
      if (this.#deps.memory() > RECYCLE_ABOVE_BYTES) this.#isUsable = false;
      running.settle(running.isAborted ? { type: 'aborted' } : outcomeOf(message));
      const cause = 'an invocation kept its thread after its outcome';
      running.timer ??= setTimeout(() => this.#retire(cause), KILL_AFTER_MS);
      this.#closeIfUnused();
    }
  }

  /** A host of ours keeps to the limit: one that does not would occupy us with frames for ever. */
  #onLines(running: Running, lines: LogLine[]): void {
    for (const { message } of lines) {
      running.logBytes += Buffer.byteLength(message) + LINE_COST_BYTES;
    }
    if (running.logBytes > LOG_MAX_BYTES) this.kill('it printed more than a run may');
    else if (!running.isSettled) running.onLines(lines); // what comes later, nobody waits for
  }

  #finish(id: string, running: Running, outcome: RunOutcome): void {
    clearTimeout(running.timer);
    this.#running.delete(id);
    running.dispose();
    running.settle(outcome); // changes nothing when it has one
    this.#closeIfUnused();
  }

  #failAll(cause: string, said: string): void {
    this.#isUsable = false;
    const { log } = this.#deps;
    const cut = [...this.#running.values()].some(({ isSettled }) => !isSettled);
    if (cut) log.warn({ cause, said: said.slice(-2_000) }, 'function host lost');
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

/**
 * A run that ended without a word. The tenant's code is what runs there: it is its failure unless
 * we know better.
 */
export const NO_OUTCOME: Failure = {
  type: 'failure',
  code: 'WORKLOAD_ERROR',
  name: '',
  message: 'the handler ended without an outcome',
  stack: '',
};

/** What a host told, as it is taken. */
export function outcomeOf(
  message: Exclude<FromHost, { type: 'ready' | 'log' | 'done' }>,
): RunOutcome {
  if (message.type !== 'error') return message;
  const { name, message: text, stack } = message;
  return { type: 'failure', code: 'WORKLOAD_ERROR', name, message: text, stack };
}
