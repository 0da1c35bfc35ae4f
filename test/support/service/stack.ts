/**
 * Runs the real service for a test: `await using stack = await boot()` starts `tabern serve` with a
 * temporary data directory and a free port. The end of the scope stops everything; a process, run
 * directory, temporary file or listening port that is left fails the test.
 */
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../../proto/common/must.ts';
import { openStored, type Stored } from '../core/stored.ts';
import { openJudged } from '../judge/judged.ts';
import { until } from '../poll.ts';
import { freePort } from '../port.ts';
import { keepSelfTest, lendSelfTest } from '../runner/self-test-record.ts';
import { tempDirectory } from '../temp.ts';
import {
  listeningPorts,
  type Process,
  processesNaming,
  rolesOf,
  settingsOf,
  stillRunning,
} from './processes.ts';
import { APART, addressOf, endService, isApart, ownCommand, startService } from './serve.ts';

/** SIGTERM drains for 30 s at most (proto/spec/rest.md 5); the rest is for a loaded machine. */
const STOP_LIMIT_MS = 60_000;
/** The processes of a killed service must end within this: each ends when its parent is gone. */
const GONE_LIMIT_MS = 45_000;

export type BootOptions = {
  /** Path of a PEM file with the CA of the test's receiver. */
  webhookCa?: string;
  /** A directory that becomes the data directory: a copy of it. */
  data?: string;
  /** The key of the default project; by default a new one. */
  apiKey?: string;
  /** More TABERN_* variables. */
  env?: Record<string, string>;
  /** The command that runs tabern; by default from the sources. */
  command?: readonly [string, ...string[]];
  /** A module that each process of the service loads first: its path or URL. */
  preload?: string;
  /**
   * For benchmarks and TLS only: clients connect to the service directly, and responses are not
   * checked.
   */
  isDirect?: true;
};

export type Stack = {
  /** The URL for clients: that of the proxy that checks the responses. */
  url: string;
  apiKey: string;
  projectId: string;
  /** Of core; of the first of two with the roles apart. */
  dataDir: string;
  stored: Stored;
  /** Of the running service; changes at a restart. */
  readonly pid: number;
  /** How long the last start took until it was ready. */
  readonly readyMs: number;
  /** fetch of a path with the project's key; a plain object as `json` becomes the body. */
  fetch(path: string, init?: RequestInit & { json?: unknown }): Promise<Response>;
  /** As fetch, but returns the parsed body and throws when the status is not 2xx. */
  call<T = Record<string, unknown>>(
    path: string,
    init?: RequestInit & { json?: unknown },
  ): Promise<T>;
  /**
   * The pids of all processes with that role; waits until all have started. Of a service of one
   * process, core and the gateway are that one.
   */
  pidsOf(role: keyof typeof APART): Promise<number[]>;
  /**
   * The pid of the runner; waits for its start. With the roles apart it is the one that has the
   * session, invocation or build with this id; any without one.
   */
  runnerPid(jobId?: string): Promise<number>;
  /** Ends the service by a signal and waits until it has ended. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /**
   * Stops the service with SIGTERM when it runs, and starts it again on the same data. `more`:
   * variables from then on.
   */
  restart(more?: Record<string, string>): Promise<void>;
  /** The output of the service, over all its starts. */
  logs(): string;
  /** Leftovers of ended services: one line each. */
  leftovers(): string[];
} & AsyncDisposable;

/** Starts the service; see the options. */
export async function boot(options: BootOptions = {}): Promise<Stack> {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const dataDir = join(dir.path, 'data');
  const port = await freePort();
  const { apiKey = `svc_test_${crypto.randomUUID()}` } = options;
  if (options.data !== undefined) cpSync(options.data, dataDir, { recursive: true });
  lendSelfTest(dataDir);
  const { preload, command = ownCommand(preload) } = options;
  const tempPath = join(dir.path, 'tmp');
  mkdirSync(tempPath);
  let env = variables({ dataDir, tempPath, port, apiKey }, options);
  const stored = openStored({ dataDir, isApart: isApart(command), env });
  const own = addressOf(env);
  const { url } = options.isDirect ? { url: own } : cleanup.use(await openJudged(own));
  const seen: Process[] = [];
  let printed = '';
  let service = await startService(env, command);
  let isUp = true;

  const end = async (signal: NodeJS.Signals) => {
    if (!isUp) return;
    isUp = false;
    seen.push(...(await endService(service, signal, STOP_LIMIT_MS)));
    for (const directory of stored.directories()) keepSelfTest(directory);
    printed += service.output();
  };
  const leftovers = () => leftOf({ dataDir, stored, tempPath, port, seen, isUp });
  cleanup.defer(async () => {
    await end('SIGTERM');
    await expectNothingLeft(leftovers, printed);
  });
  const request = keyed(url, apiKey);
  const projectId = await ownProject(request);
  const kept = cleanup.move();
  return {
    url,
    apiKey,
    projectId,
    dataDir,
    stored,
    get pid() {
      return service.pid;
    },
    get readyMs() {
      return service.readyMs;
    },
    fetch: request,
    call: async (path, init) => bodyOf(await request(path, init), path),
    pidsOf: (role) => until(() => pidsOf(service.pid, role, isApart(command)), STOP_LIMIT_MS),
    runnerPid: (jobId) => runnerPid(service.pid, isApart(command) ? stored : undefined, jobId),
    kill: (signal = 'SIGKILL') => end(signal),
    async restart(more = {}) {
      await end('SIGTERM');
      env = { ...env, ...more };
      service = await startService(env, command);
      isUp = true;
    },
    logs: () => (isUp ? printed + service.output() : printed),
    leftovers,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/**
 * One service for the tests of a file that neither restart nor configure it: the first `get` starts
 * it. The last test of the file awaits `end`, which fails like the end of a stack's scope.
 */
export function shareStack(options?: BootOptions) {
  let stack: Promise<Stack> | undefined;
  return {
    get(): Promise<Stack> {
      stack ??= boot(options).catch((error: Error) => {
        stack = undefined; // the next test tries again
        throw error;
      });
      return stack;
    },
    async end(): Promise<void> {
      await (await stack)?.[Symbol.asyncDispose]();
    },
  };
}

function variables(
  own: { dataDir: string; tempPath: string; port: number; apiKey: string },
  { webhookCa, env }: BootOptions,
): Record<string, string> {
  return {
    TMPDIR: own.tempPath,
    TABERN_DATA: own.dataDir,
    TABERN_PORT: String(own.port),
    TABERN_API_KEY: own.apiKey,
    TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.0/8',
    TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    ...(webhookCa === undefined ? {} : { TABERN_WEBHOOK_CA: webhookCa }),
    ...env,
  };
}

function keyed(url: string, apiKey: string): Stack['fetch'] {
  return (path, { json, ...init } = {}) => {
    const headers = new Headers(init.headers);
    if (!headers.has('x-svc-api-key')) headers.set('x-svc-api-key', apiKey);
    if (json === undefined) return fetch(url + path, { ...init, headers });
    headers.set('content-type', 'application/json');
    return fetch(url + path, { method: 'POST', ...init, headers, body: JSON.stringify(json) });
  };
}

async function bodyOf<T>(answer: Response, path: string): Promise<T> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T; // the test checks what it reads
}

/** Each of several gateways behind one address reaches core at a moment of its own. */
const GATEWAYS_MAX = 4;

async function ownProject(request: Stack['fetch']): Promise<string> {
  const answered = async () => {
    const answer = await request('/v1/projects');
    return answer.status !== 503 && answer;
  };
  for (let count = 1; count < GATEWAYS_MAX; count += 1) await until(answered);
  const [project] = await bodyOf<{ id: string }[]>(await until(answered), '/v1/projects');
  return must(project, 'the project of the key').id;
}

/** False while one of them is missing. */
function pidsOf(pid: number, role: keyof typeof APART, areApart: boolean): number[] | false {
  if (!areApart && role !== 'runner') return [pid];
  const pids = rolesOf(pid, role).map((one) => one.pid);
  return pids.length >= (areApart ? APART[role] : 1) && pids;
}

/** `stored`: of roles apart. */
async function runnerPid(pid: number, stored?: Stored, jobId?: string): Promise<number> {
  const isAny = stored === undefined || jobId === undefined;
  const id = isAny ? undefined : await until(() => stored.holderOf(jobId), STOP_LIMIT_MS);
  return await until(() => {
    const found = rolesOf(pid, 'runner');
    if (id === undefined) return found[0]?.pid;
    return found.find((one) => settingsOf(one.pid).includes(`TABERN_RUNNER_ID=${id}`))?.pid;
  }, STOP_LIMIT_MS);
}

type Place = {
  dataDir: string;
  stored: Stored;
  tempPath: string;
  port: number;
  seen: readonly Process[];
  isUp: boolean;
};

/** A running service may have processes and run directories; an ended one may not. */
function leftOf({ dataDir, stored, tempPath, port, seen, isUp }: Place): string[] {
  const alive = stillRunning(seen).map((one) => `process ${one.pid}: ${one.command}`);
  if (isUp) return alive;
  const named = processesNaming(dataDir).map((one) => `process ${one.pid}: ${one.command}`);
  const runs = stored
    .directories()
    .flatMap((dir) => entriesOf(join(dir, 'run')))
    .map((name) => `run directory: ${name}`);
  const temps = entriesOf(tempPath).map((name) => `temporary file: ${name}`);
  const ports = listeningPorts().has(port) ? [`port ${port} is listened on`] : [];
  return [...new Set([...alive, ...named]), ...runs, ...temps, ...ports];
}

async function expectNothingLeft(leftovers: () => string[], printed: string): Promise<void> {
  const deadline = performance.now() + GONE_LIMIT_MS;
  const left = await until(() => {
    const found = leftovers(); // reads all processes of the machine
    return (found.length === 0 || performance.now() > deadline) && found;
  }, 2 * GONE_LIMIT_MS);
  if (left.length > 0) {
    throw new Error(
      `left behind:\n${left.join('\n')}\nthe service said:\n${printed.slice(-4_000)}`,
    );
  }
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
