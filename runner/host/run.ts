/**
 * One run on the host: sends a task to a thread and translates the thread's messages into frames.
 *
 * log* -> result | manifests | error -> done. A thread that ends without an outcome gets one here,
 * by how it ended. An aborted run has none: the supervisor knows why it aborted. done is last, when
 * the thread is free or gone.
 */
import { once } from 'node:events';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { explain } from './errors.ts';
import {
  type ErrorText,
  type FromHost,
  LOG_LINES_MAX,
  type LogLine,
  type Retirement,
} from './messages.ts';
import { openMask, readSecrets } from './secrets.ts';
import type { Threads } from './threads.ts';
import type { Task, ThreadMessage } from './worker.ts';

/** Ours: from the abort of ctx.signal to the end of the thread; after 1,000 the host is killed. */
const ABORT_GRACE_MS = 200;
/**
 * Ours: an ended thread closes its port within a few ms. Deno leaves the port of a thread open that
 * ended in a loop. With the grace this is below the second after which a host takes no more runs.
 */
const PORT_CLOSE_MS = 500;
/** Ours: from the outcome to the report of a clean thread; a busy thread never reports. */
const SETTLE_MAX_MS = 500;
/** In characters of one log frame: far below the limit of a frame. Ours. */
const LOG_FRAME_CHARACTERS = 512 * 1024;

const isDeno = process.versions['deno'] !== undefined;

type WithoutPort<T> = T extends unknown ? Omit<T, 'port'> : never;
export type Run = {
  /** Ends the run; done follows soon after. */
  abort(): void;
  /** Settles after done was sent; never rejects. */
  done: Promise<void>;
};

export function startRun(
  threads: Threads,
  work: { id: string; bundle: string; task: WithoutPort<Task> },
  send: (message: FromHost) => void,
): Run {
  const { id, bundle } = work;
  const { port1: port, port2 } = new MessageChannel();
  const ender = new AbortController();
  const logs = lineBatch((lines) => send({ type: 'log', id, lines }));
  let isAborted = false;
  let hasOutcome = false;
  let exhausted: keyof typeof EXHAUSTED | undefined;
  let retired: Retirement | undefined;
  let settling: NodeJS.Timeout | undefined;

  const sendOutcome = (outcome: FromHost): void => {
    logs.flush();
    if (!hasOutcome && !isAborted) send(outcome);
    hasOutcome = true;
  };
  port.on('message', (message: ThreadMessage) => {
    if (message.type === 'log') {
      logs.add(message.line);
    } else if (message.type === 'exhausted') {
      exhausted = message.what;
      settling ??= setTimeout(() => ender.abort(), SETTLE_MAX_MS);
    } else if (message.type === 'settled') {
      clearTimeout(settling);
      retired = message.retired;
      threads.markFresh(bundle, message.fresh);
      if (message.retired !== '') ender.abort();
    } else {
      sendOutcome({ ...message, id });
      settling ??= setTimeout(() => ender.abort(), SETTLE_MAX_MS);
    }
  });
  const closed = once(port, 'close');
  let drained: Promise<unknown> | undefined;
  const drain = () => (drained ??= Promise.race([closed, sleep(PORT_CLOSE_MS)]));

  const follow = async (): Promise<void> => {
    try {
      await threads.run({ ...work.task, port: port2 } as Task, bundle, ender.signal);
    } catch (error) {
      // the thread's last messages come first
      await drain();
      if (retired === undefined || retired === '') {
        retired = hasOutcome ? 'left something behind' : causeOf(error, isAborted);
        if (exhausted === 'heap' && !isAborted) retired = 'memory';
      }
      const why = exhausted ? EXHAUSTED[exhausted] : deathText(error, work.task);
      sendOutcome({ type: 'error', id, ...why });
    }
    clearTimeout(settling);
    await drain();
    logs.flush();
    // native code continues after its thread was ended, and keeps its place
    if (!isDeno) await closed;
    port.close();
    send({ type: 'done', id, retired: retired ?? 'died' });
  };
  return {
    abort() {
      if (isAborted) return;
      isAborted = true;
      port.postMessage('abort');
      setTimeout(() => ender.abort(), ABORT_GRACE_MS);
    },
    done: follow(),
  };
}

function causeOf(error: unknown, isAborted: boolean): Retirement {
  if (isAborted) return 'aborted';
  return isOutOfMemory(error) ? 'memory' : 'died';
}

function isOutOfMemory(error: unknown): boolean {
  return (error as { code?: unknown })?.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

const EXHAUSTED = {
  descriptors: {
    name: '',
    message: 'the handler left hundreds of files and sockets open: close what it opens',
    stack: '',
  },
  heap: {
    name: 'OutOfMemory',
    message: 'the handler ran out of memory: a function may use 256 MiB of JavaScript heap',
    stack: '',
  },
} satisfies Record<string, ErrorText>;

/** Why a thread ended, for the user whose code ended it. */
function deathText(error: unknown, task: WithoutPort<Task>): ErrorText {
  const mask = openMask(readSecrets(task.type === 'invoke' ? task.secretsJson : '{}'));
  const known = explain(error, task.file, mask);
  const exit = /^worker exited with code: (-?\d+)$/.exec(known.message);
  if (exit) {
    const call = `process.exit(${exit[1]})`;
    const message = `the handler ended its thread with ${call}; return a value instead`;
    return { name: '', message, stack: '' };
  }
  return isOutOfMemory(error) ? EXHAUSTED.heap : known;
}

/** Batches the lines of one turn into frames. */
function lineBatch(send: (lines: LogLine[]) => void) {
  let lines: LogLine[] = [];
  let characters = 0;
  let timer: NodeJS.Immediate | undefined;
  const flush = (): void => {
    clearImmediate(timer);
    timer = undefined;
    if (lines.length > 0) send(lines);
    lines = [];
    characters = 0;
  };
  return {
    flush,
    add(line: LogLine): void {
      lines.push(line);
      characters += line.message.length;
      if (lines.length >= LOG_LINES_MAX || characters > LOG_FRAME_CHARACTERS) flush();
      else timer ??= setImmediate(flush);
    },
  };
}
