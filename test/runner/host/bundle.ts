/**
 * A function host's surroundings for tests: a jail, a run directory, hand-written bundles, a relay
 * that counts.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Log, openLog } from '../../../proto/common/log.ts';
import type { Bundle } from '../../../runner/functions/bundle-cache.ts';
import { type Hosts, type InvokeOutcome, openHosts } from '../../../runner/functions/hosts.ts';
import { node, type Runtime } from '../../../runner/functions/runtime.ts';
import type { LogLine } from '../../../runner/host/messages.ts';
import type { Jail } from '../../../runner/jail/jail.ts';
import { openJail } from '../../../runner/jail/open.ts';
import type { UpgradeHandler } from '../../../runner/sessions/server/key-authenticated-server.ts';

export const log = openLog({ role: 'test', level: 'silent' });

export type Ran = { outcome: InvokeOutcome; lines: LogLine[] };
export type Yard = AsyncDisposable & {
  hosts: Hosts;
  dir: string;
  bundle(source: string): Promise<Bundle>;
  /** Waits until every run has given its thread back. */
  idle(): Promise<void>;
  /** Runs the function `f` of a bundle whose body of f is given. */
  run(body: string, options?: RunOptions): Promise<Ran>;
};
export type RunOptions = {
  params?: unknown;
  projectId?: string;
  timeoutMs?: number;
  /** Ends the run once it has printed this line: in no run before it has begun. */
  endOn?: string;
  onLine?(message: string): void;
  /** Ends the run when the test has seen enough. */
  signal?: AbortSignal;
  secrets?: Parameters<Hosts['invoke']>[0]['secrets'];
  /** Instead of a body: this bundle. */
  bundle?: Bundle;
  name?: string;
};

const NOWHERE: UpgradeHandler = { serve: () => {} };
type Sandbox = Parameters<typeof openJail>[0]['sandbox'];
let count = 0;

/** As runner/sdk/registry.ts exports them. */
export function moduleOf(functions: string): string {
  return `const defined = new Map(Object.entries({ ${functions} })
    .map(([name, handler]) => [name, { name, handler, config: {} }]));
  export const definitions = () => defined;
  export const manifests = () => [...defined.keys()].map((name) => ({ name }));`;
}

export type YardOptions = {
  spares?: number;
  isolation?: 'warm' | 'fresh';
  runtime?: Runtime;
  /** Where connections to a browser end; nowhere when absent. */
  relay?: UpgradeHandler;
  memoryMaxBytes?: number;
  /** Of the runner; silent when absent. */
  log?: Log;
};

export async function openYard(
  sandbox: Sandbox | Jail = 'auto',
  options: YardOptions = {},
): Promise<Yard> {
  const dir = await mkdtemp(join(tmpdir(), 'yard-'));
  const jail = typeof sandbox === 'string' ? await openJail({ sandbox, log }) : sandbox;
  const { spares = 0, isolation = 'warm', runtime = node(), relay = NOWHERE } = options;
  const { memoryMaxBytes, log: ofHosts = log } = options;
  const limits = memoryMaxBytes === undefined ? {} : { memoryMaxBytes };
  const kept = { jail, runtime, isolation, runDir: dir, spares, log: ofHosts };
  const hosts = openHosts({ ...kept, ...limits });
  const bundle = async (source: string): Promise<Bundle> => {
    const sha256 = createHash('sha256').update(source).digest('hex');
    const path = join(dir, `${sha256}.mjs`);
    await writeFile(path, source);
    return { path, sha256 };
  };
  return {
    hosts,
    dir,
    bundle,
    async idle() {
      while (hosts.threads() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async run(body, options = {}) {
      const { params = {}, projectId = 'project', timeoutMs = 60_000, name = 'f' } = options;
      const lines: LogLine[] = [];
      const over = new AbortController();
      const { signal = over.signal } = options;
      count += 1;
      const outcome = await hosts.invoke({
        invocationId: `invocation-${count}`,
        projectId,
        bundle: options.bundle ?? (await bundle(moduleOf(`f: async (ctx, params) => { ${body} }`))),
        functionName: name,
        paramsJson: JSON.stringify(params),
        secrets: options.secrets ?? [],
        sessionId: 'session',
        signingKey: `key-${count}`,
        region: 'us-west-2',
        relay,
        onLines: (more) => {
          lines.push(...more);
          for (const { message } of more) options.onLine?.(message);
          if (more.some(({ message }) => message === options.endOn)) over.abort();
        },
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), over.signal, signal]),
      });
      return { outcome, lines };
    },
    async [Symbol.asyncDispose]() {
      await hosts[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
