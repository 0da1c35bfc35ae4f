/**
 * Captures a handler's output line by line. console.* and process.stdout/stderr.write of a thread
 * are replaced once. A line belongs to the run in whose asynchronous context it was printed, so
 * leftovers of an earlier run never write into a later one's log. Lines are posted synchronously: a
 * line printed before an endless loop arrives. Values of secrets are masked in whole lines, before
 * they are truncated. Limits: 64 KiB a line (truncated), 1 MiB a run,
 * counting 16 bytes for each line (then one marker line, and nothing more).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Console } from 'node:console';
import process from 'node:process';
import { StringDecoder } from 'node:string_decoder';
import {
  type Level,
  LINE_COST_BYTES,
  LINE_MAX_BYTES,
  type LogLine,
  MARKER,
  RUN_MAX_BYTES,
} from './messages.ts';
import type { Mask } from './secrets.ts';

const LEVEL_OF: Readonly<Record<string, Level>> = {
  log: 'log',
  info: 'info',
  debug: 'debug',
  warn: 'warn',
  error: 'error',
  trace: 'error',
};
/** Captured before a tenant's code can replace it. */
const now = Date.now.bind(Date);

/** The log of one run. */
export class LineSink {
  readonly #post: (line: LogLine) => void;
  readonly #mask: Mask;
  readonly #partial = new Map<'stdout' | 'stderr', string>();
  #bytes = 0;
  #isOver = false;

  constructor(post: (line: LogLine) => void, mask: Mask) {
    this.#post = post;
    this.#mask = mask;
  }

  /** Accepts text with or without line breaks; an incomplete line is buffered. */
  write(stream: 'stdout' | 'stderr', level: Level, text: string): void {
    if (this.#isOver) return;
    const pieces = ((this.#partial.get(stream) ?? '') + text).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) this.#line(level, piece);
    // an endless line is limited here: it is truncated anyway
    this.#partial.set(stream, last.slice(0, LINE_MAX_BYTES + this.#mask.reach));
  }

  /** Flushes incomplete lines, then ignores further output. */
  close(): void {
    for (const [stream, text] of this.#partial) {
      if (text !== '') this.#line(stream === 'stdout' ? 'log' : 'error', text);
    }
    this.#isOver = true;
  }

  #line(level: Level, text: string): void {
    if (this.#isOver) return;
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    const message = this.#mask.cut(line, LINE_MAX_BYTES);
    this.#bytes += Buffer.byteLength(message) + LINE_COST_BYTES;
    if (this.#bytes > RUN_MAX_BYTES) {
      this.#isOver = true;
      this.#post({ level: 'warn', message: MARKER, timestamp: now() });
      return;
    }
    this.#post({ level, message, timestamp: now() });
  }
}

const runs = new AsyncLocalStorage<LineSink>();
/**
 * Deno (2.9) runs socket callbacks in the context of the last run, so output could belong to an old
 * run. There the current run gets the output: a thread has one run at a time.
 */
const KEEPS_CONTEXT = !('deno' in process.versions);
let current: LineSink | undefined;

/** Runs `act`; its output, and that of everything it starts, goes to `sink`. */
export function printingTo<T>(sink: LineSink, act: () => T): T {
  current = sink;
  return runs.run(sink, act);
}

/** Replaces this thread's console and standard streams. Call once, before any tenant's code. */
export function captureConsole(): void {
  let level: Level | undefined;
  // code started while the bundle loaded has no run of its own: its output goes to the current run
  const own = KEEPS_CONTEXT ? () => runs.getStore() : () => undefined;
  const sink = (): LineSink | undefined => own() ?? current;
  const writer = (stream: 'stdout' | 'stderr', fallback: Level) => {
    const decoder = new StringDecoder('utf8');
    return (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
      const text = typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk as Buffer));
      sink()?.write(stream, level ?? fallback, text);
      const callback = typeof encoding === 'function' ? encoding : done;
      if (typeof callback === 'function') queueMicrotask(() => callback(null));
      return true;
    };
  };
  const stdout = writer('stdout', 'log');
  const stderr = writer('stderr', 'error');
  Object.assign(process.stdout, { write: stdout });
  Object.assign(process.stderr, { write: stderr });

  const printer = new Console({
    stdout: streamOf(stdout),
    stderr: streamOf(stderr),
    colorMode: false,
  });
  for (const [name, method] of Object.entries(printer)) {
    if (typeof method !== 'function' || name === 'Console') continue;
    const named = LEVEL_OF[name];
    const replaced = (...args: unknown[]): unknown => {
      const outer = level;
      level = named ?? outer; // console.table and others print through console.log
      try {
        return Reflect.apply(method, printer, args);
      } finally {
        level = outer;
      }
    };
    Object.assign(console, { [name]: replaced });
  }
}

/** The part of a stream that Console uses. */
function streamOf(write: (chunk: unknown) => boolean): NodeJS.WritableStream {
  const nothing = () => stream;
  const stream = {
    write,
    once: nothing,
    on: nothing,
    removeListener: nothing,
    listenerCount: () => 1,
  };
  return stream as unknown as NodeJS.WritableStream;
}
