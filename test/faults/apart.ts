/**
 * `tabern core`, `tabern gateway` and `tabern runner` as separate processes, connected by the
 * socket and the tokens of the data directory. Each can be killed alone and is started again, as by
 * a supervisor; the others continue.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../../proto/common/must.ts';
import { openJudged } from '../support/judge/judged.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { inherited } from '../support/service/serve.ts';
import type { Stack } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';
import { killFamily } from './kills.ts';

export const ROLES = ['core', 'gateway', 'runner'] as const;
export type Role = (typeof ROLES)[number];

const BIN = fileURLToPath(new URL('../../gateway/bin.ts', import.meta.url));
const READY_LIMIT_MS = 90_000;
const STOP_LIMIT_MS = 60_000;
const OUTPUT_MAX_CHARS = 4 << 20;

type Init = RequestInit & { json?: unknown };

export type Apart = AsyncDisposable &
  Pick<Stack, 'call' | 'projectId' | 'dataDir' | 'logs'> & {
    /** Sends SIGKILL and starts the role again. Returns when the service responds again. */
    kill(role: Role): Promise<void>;
    /** Sends SIGKILL; `start` starts the role again. */
    end(role: Role): Promise<void>;
    start(role: Role): void;
    /** As `call`; resolves with any answer. */
    fetch(path: string, init?: Init): Promise<Response>;
    /** Ends all three with SIGTERM. */
    stop(): Promise<void>;
  };

/** The program that runs a role, and its arguments before the role's name. Default: this Node. */
type Commands = { readonly [role in Role]?: readonly [string, ...string[]] };

/**
 * Starts all three roles, on a temporary data directory and a free port. `extra` are additional
 * variables.
 */
export async function startApart(
  extra: Record<string, string> = {},
  commands: Commands = {},
): Promise<Apart> {
  await using opened = new AsyncDisposableStack();
  const dir = opened.use(tempDirectory());
  const [dataDir, temp] = [join(dir.path, 'data'), join(dir.path, 'tmp')];
  mkdirSync(temp);
  const apiKey = `svc_test_${crypto.randomUUID()}`;
  const port = await freePort();
  const { url } = opened.use(await openJudged(`http://127.0.0.1:${port}`));
  const roles = openRoles(commands, {
    TMPDIR: temp,
    TABERN_DATA: dataDir,
    TABERN_PORT: String(port),
    TABERN_API_KEY: apiKey,
    TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.0/8',
    TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    ...extra,
  });
  opened.defer(() => roles.stop());
  roles.start('core');
  // Core creates the token at its first start; the others read it.
  await until(() => existsSync(join(dataDir, 'core.sock')), READY_LIMIT_MS);
  roles.start('gateway');
  roles.start('runner');
  const answers = () =>
    fetch(`${url}/healthz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(answers, READY_LIMIT_MS);
  const fetchPath = fetcher(url, apiKey);
  const call = caller(fetchPath);
  const [project] = await call<{ id: string }[]>('/v1/projects');
  const parts = opened.move();
  return {
    call,
    dataDir,
    projectId: must(project, 'project').id,
    logs: roles.logs,
    async kill(role) {
      await roles.kill(role);
      roles.start(role);
      await until(answers, READY_LIMIT_MS);
    },
    end: roles.kill,
    start: roles.start,
    fetch: fetchPath,
    stop: () => roles.stop(),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

function openRoles(commands: Commands, env: Record<string, string>) {
  const running = new Map<Role, ChildProcess>();
  let text = '';
  const end = async (role: Role, act: (child: ChildProcess) => unknown) => {
    const child = running.get(role);
    running.delete(role);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit', { signal: AbortSignal.timeout(STOP_LIMIT_MS) });
    await Promise.all([act(child), ended]);
  };
  return {
    logs: () => text,
    start(role: Role): void {
      const [program, ...words] = commands[role] ?? [process.execPath, BIN];
      const child = spawn(program, [...words, role], {
        env: { ...inherited(), ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          if (text.length < OUTPUT_MAX_CHARS) text += chunk;
        });
      }
      running.set(role, child);
    },
    kill: (role: Role) => end(role, (child) => killFamily(must(child.pid, 'pid'))),
    /** Core last: the others need core for a clean end. */
    async stop(): Promise<void> {
      await Promise.all([end('gateway', terminate), end('runner', terminate)]);
      await end('core', terminate);
    },
  };
}

function terminate(child: ChildProcess): void {
  child.kill('SIGTERM');
}

function fetcher(url: string, apiKey: string): Apart['fetch'] {
  return (path, init = {}) => {
    const { json, ...rest } = init;
    const headers = new Headers(rest.headers);
    headers.set('x-svc-api-key', apiKey);
    if (json !== undefined) headers.set('content-type', 'application/json');
    const body = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) };
    return fetch(url + path, { ...rest, ...body, headers });
  };
}

function caller(fetchPath: Apart['fetch']): Stack['call'] {
  return async <T>(path: string, init: Init = {}): Promise<T> => {
    const answer = await fetchPath(path, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
}
