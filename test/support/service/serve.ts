/**
 * One run of `tabern serve` in a separate process, as an operator starts it. A Stack starts one
 * after another on the same data directory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { familyOf, type Process } from './processes.ts';

const SPLIT_FILE = fileURLToPath(new URL('./apart/split.ts', import.meta.url));
/** Starts the roles apart (apart/split.ts). */
export const SPLIT = [process.execPath, SPLIT_FILE] as const;
/** How many processes of each role it starts. */
export const APART = { core: 2, gateway: 2, runner: 3 } as const;
const LAUNCHER = fileURLToPath(new URL('../../../gateway/tabern.js', import.meta.url));
/**
 * The required time is 2 s (issue 2); on a machine shared with other tests a start takes longer.
 */
const READY_LIMIT_MS = 90_000;
/** Of seven processes. */
const SPLIT_READY_LIMIT_MS = 300_000;
const POLL_MS = 20;
const OUTPUT_MAX_CHARS = 4 << 20;
/** Sixteen key pairs of a first start and three Chromes take seconds of CPU time. */
export const NOTHING_IN_ADVANCE = {
  TABERN_KEY_PAIRS: '0',
  TABERN_CHROME_SPARES: '0',
  TABERN_SESSION_SPARES: '0',
  TABERN_HOST_SPARES: '0',
};
/** Browsers and function hosts in advance, as many as by default: for tests that need them. */
export const SPARES = {
  TABERN_CHROME_SPARES: '',
  TABERN_SESSION_SPARES: '',
  TABERN_HOST_SPARES: '',
};

/** `output`: the output of both streams. */
export type Service = {
  child: ChildProcess;
  pid: number;
  url: string;
  output: () => string;
  /** How long it took until GET /healthz answered 200. */
  readyMs: number;
};

/**
 * Starts it and waits until it is ready. Throws with its output when it ends before that. `command`
 * runs tabern; by default TABERN_TEST_PROGRAM, the single executable, or the sources without it.
 */
export async function startService(
  env: Record<string, string>,
  command = ownCommand(),
): Promise<Service> {
  const startedAt = performance.now();
  const [program, ...words] = command;
  const stored = isApart(command) ? await storage(env) : {};
  const child = spawn(program, [...words, 'serve'], {
    env: { ...inherited(), ...stored, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      if (text.length < OUTPUT_MAX_CHARS) text += chunk;
    });
  }
  const url = addressOf(env);
  const output = () => text;
  const deadline = startedAt + (isApart(command) ? SPLIT_READY_LIMIT_MS : READY_LIMIT_MS);
  while (!(await isReady(url))) {
    const isOver = child.exitCode !== null || child.signalCode !== null;
    if (isOver || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`tabern serve ${isOver ? 'ended' : 'was not ready in time'}:\n${text}`);
    }
    await pause(POLL_MS);
  }
  if (child.pid === undefined) throw new Error('ready, and without a pid');
  return { child, pid: child.pid, url, output, readyMs: performance.now() - startedAt };
}

/** Over TLS, this process must trust the certificate. */
export function addressOf(env: Record<string, string>): string {
  const scheme = env['TABERN_TLS_CERT_FILE'] === undefined ? 'http' : 'https';
  return `${scheme}://127.0.0.1:${env['TABERN_PORT']}`;
}

/** Sends the signal and waits for the end. Returns the processes that it had at that moment. */
export async function endService(
  service: Service,
  signal: NodeJS.Signals,
  limitMs: number,
): Promise<Process[]> {
  const { child, pid } = service;
  if (child.exitCode !== null || child.signalCode !== null) return [];
  const family = familyOf(pid);
  const ended = once(child, 'exit', { signal: AbortSignal.timeout(limitMs) });
  child.kill(signal);
  try {
    await ended;
  } catch (cause) {
    child.kill('SIGKILL');
    const message = `not ended ${limitMs} ms after ${signal}:\n${service.output()}`;
    throw new Error(message, { cause });
  }
  return family;
}

/**
 * The sources, or TABERN_TEST_PROGRAM. `preload`: a module that each process loads first, which
 * only the sources can. TABERN_TEST_TOPOLOGY=split: the roles apart (apart/split.ts).
 */
export function ownCommand(preload?: string): readonly [string, ...string[]] {
  const first = preload === undefined ? [] : ['--import', preload];
  if (process.env['TABERN_TEST_TOPOLOGY'] === 'split') {
    return [process.execPath, ...first, SPLIT_FILE];
  }
  const program = preload === undefined ? process.env['TABERN_TEST_PROGRAM'] : undefined;
  return program === undefined ? [process.execPath, ...first, LAUNCHER] : [program];
}

export function isApart(command: readonly string[]): boolean {
  return command.includes(SPLIT_FILE);
}

/** A bucket and, if not given, a database for the data directory, the same at each start. */
async function storage({
  TABERN_DATA: dataDir = '',
  TABERN_DATABASE_URL: given,
}: Record<string, string>): Promise<Record<string, string>> {
  const { bucketOf, urlOf } = await import('../engine.ts');
  return { TABERN_DATABASE_URL: given ?? (await urlOf(dataDir)), ...(await bucketOf(dataDir)) };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(10_000) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false; // not listening yet; the caller has a deadline
  }
}

/** The environment of a service: the tester's without its TABERN_* variables. */
export function inherited(): Record<string, string | undefined> {
  const own = Object.entries(process.env);
  const kept = own.filter(([name]) => !name.startsWith('TABERN_') || isChrome(name));
  return { ...Object.fromEntries(kept), ...NOTHING_IN_ADVANCE };
}

function isChrome(name: string): boolean {
  return name === 'TABERN_CHROME';
}
