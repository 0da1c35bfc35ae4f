/**
 * Runs on a thread of the host. It starts unbound. A task names a bundle, which is loaded inside
 * the task, under the task's deadline, and stays: the thread is bound to that bundle from then on.
 * One task at a time.
 *
 * task -> load -> handler -> outcome -> settle -> clean: the task ends, the thread is kept
 *                                              -> not clean: it never ends, the thread is retired
 *
 * All messages of a task are sent over its own port, which keeps their order; the end of the port
 * is the end of its messages.
 */
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { MessagePort } from 'node:worker_threads';
import { hideOwnEnv } from './config.ts';
import { captureConsole, LineSink, printingTo } from './console.ts';
import { explain, stringify } from './errors.ts';
import { isHeapSpent, watchHeap } from './heap.ts';
import { hasDescriptors, isClean, markBaseline } from './hygiene.ts';
import { type ErrorText, type LogLine, NO_REGISTRY } from './messages.ts';
import { type Mask, openMask, readSecrets, type Secrets } from './secrets.ts';

/** Ours: sockets that a driver closes take a few turns to close. */
const SETTLE_MS = 100;
const SETTLE_STEP_MS = 5;
/** Ours: ten times what a build may define. */
const FRESH_MAX = 100;

/** A task as the host sends it to a thread. */
export type Task = {
  port: MessagePort;
  /** Path of the bundle. */
  file: string;
  /** For functions that do not set it themselves. */
  isolation: Isolation;
} & (
  | { type: 'introspect' }
  | {
      type: 'invoke';
      functionName: string;
      paramsJson: string;
      /** A JSON object: values by name. */
      secretsJson: string;
      session: { id: string; connectUrl: string };
      invocation: { id: string; region: string };
    }
);

/** Whether a thread may be reused: `fresh` is one thread for one run. */
export type Isolation = 'warm' | 'fresh';

/** Messages of a thread about its task. */
export type ThreadMessage =
  | { type: 'log'; line: LogLine }
  | { type: 'result'; json: string | undefined }
  | { type: 'manifests'; json: string }
  | ({ type: 'error' } & ErrorText)
  /** The run used up descriptors or the heap: no outcome follows, and the thread ends. */
  | { type: 'exhausted'; what: 'descriptors' | 'heap' }
  /** `fresh`: functions of the bundle that need an unused thread. */
  | { type: 'settled'; retired: '' | 'left something behind' | 'fresh'; fresh: string[] };

/** A bundle, as built with runner/sdk/registry.ts. */
type Bundle = {
  definitions(): ReadonlyMap<string, Definition>;
  manifests(): unknown;
};
type Definition = {
  handler: (ctx: object, params: unknown) => unknown;
  config?: { isolation?: unknown };
};

hideOwnEnv();
captureConsole();
const exit = process.exit.bind(process);
let loaded: Bundle | undefined;
/** Fails the current run with an uncaught error; undefined between runs. */
let failRun: ((error: unknown) => void) | undefined;
failOn('uncaughtException');
failOn('unhandledRejection');

/** Piscina's entry. */
export default async function run(task: Task): Promise<void> {
  const { port } = task;
  // captured now: a tenant's code may replace methods of MessagePort
  const post = port.postMessage.bind(port) as (message: ThreadMessage) => void;
  const close = port.close.bind(port);
  const secrets = readSecrets(task.type === 'invoke' ? task.secretsJson : '{}');
  const mask = openMask(secrets);
  const sink = new LineSink((line) => post({ type: 'log', line }), mask);
  const aborter = new AbortController();
  port.on('message', () => aborter.abort(new Error('the invocation was ended')));

  const uncaught = new Promise<ThreadMessage>((resolve) => {
    failRun = (error) => resolve({ type: 'error', ...explain(error, task.file, mask) });
  });
  using _heap = watchHeap(() => {
    post({ type: 'exhausted', what: 'heap' });
    exit();
  });
  const given = { secrets, mask, signal: aborter.signal };
  const outcomes = [printingTo(sink, () => outcomeOf(task, given)), uncaught];
  const outcome = await Promise.race(outcomes);
  const hasFailed = failRun === undefined;
  failRun = undefined;
  sink.close();
  if (!hasDescriptors(task.file)) {
    post({ type: 'exhausted', what: 'descriptors' });
    exit(); // a thread ended from outside is replaced before its files are closed
  }
  post(outcome);

  const fresh = freshOf(task.isolation);
  const retired = await retirementOf(task, fresh, hasFailed);
  post({ type: 'settled', retired, fresh });
  if (retired !== '') await new Promise<never>(() => {}); // the host ends this thread
  close();
}

/**
 * An uncaught error fails the run and ends its thread, as it would by default; but only here is its
 * stack available under Deno, too. A handler may add its own listener: then the error counts as
 * caught.
 */
function failOn(event: 'uncaughtException' | 'unhandledRejection'): void {
  const { exit } = process;
  process.on(event, (error: unknown) => {
    if (process.listenerCount(event) > 1) return;
    if (failRun === undefined) exit(1);
    failRun?.(error);
    failRun = undefined;
  });
}

type Given = { secrets: Secrets; mask: Mask; signal: AbortSignal };

async function outcomeOf(task: Task, given: Given): Promise<ThreadMessage> {
  try {
    if (loaded === undefined) {
      loaded = await load(task.file);
      markBaseline();
    }
    if (task.type === 'introspect') {
      return { type: 'manifests', json: stringify(loaded.manifests()) ?? '[]' };
    }
    const definition = loaded.definitions().get(task.functionName);
    if (definition === undefined) {
      throw new Error(`the bundle defines no function ${JSON.stringify(task.functionName)}`);
    }
    const params: unknown = JSON.parse(task.paramsJson);
    const { session, invocation } = task;
    const { secrets, signal } = given;
    const ctx = { session, invocation, params, secrets, signal };
    return { type: 'result', json: stringify(await definition.handler(ctx, params)) };
  } catch (error) {
    return { type: 'error', ...explain(error, task.file, given.mask) };
  }
}

async function load(file: string): Promise<Bundle> {
  const bundle: Partial<Bundle> = await import(pathToFileURL(file).href);
  const { definitions, manifests } = bundle;
  if (typeof definitions !== 'function' || typeof manifests !== 'function') {
    throw new Error(NO_REGISTRY);
  }
  return { definitions, manifests };
}

async function retirementOf(task: Task, fresh: readonly string[], hasFailed: boolean) {
  if (task.type === 'invoke' && fresh.includes(task.functionName)) return 'fresh';
  const mayStay = loaded !== undefined && task.type === 'invoke' && !hasFailed && !isHeapSpent();
  return mayStay && (await isSettled()) ? '' : 'left something behind';
}

/** Names of the loaded functions that are fresh: by their own setting, else by the host's. */
function freshOf(isolation: Isolation): string[] {
  const all = [...(loaded?.definitions() ?? [])];
  const fresh = all.filter(([, { config }]) => (config?.isolation ?? isolation) === 'fresh');
  return fresh.map(([name]) => name).slice(0, FRESH_MAX);
}

/** Whether the thread is as it was after its bundle was loaded; closing resources get a moment. */
async function isSettled(): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < SETTLE_MS; waitedMs += SETTLE_STEP_MS) {
    if (isClean(process.getActiveResourcesInfo())) return true;
    await sleep(SETTLE_STEP_MS, undefined, { ref: false });
  }
  return isClean(process.getActiveResourcesInfo());
}
