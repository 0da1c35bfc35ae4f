/** Runs invocations on one host process per project, and each introspection on a new one. */
import { randomUUID } from 'node:crypto';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import type { SecretWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { hashOf } from '../common/blob-cache.ts';
import { type LogLine, NO_REGISTRY } from '../host/messages.ts';
import { isMasked } from '../host/secrets.ts';
import { limitWork, type WorkLimits } from '../jail/cpu-limit.ts';
import type { UpgradeHandler } from '../sessions/server/key-authenticated-server.ts';
import type { Bundle } from './bundle-cache.ts';
import { type Failure, NO_OUTCOME, type RunOutcome } from './host-connection.ts';
import { HostPool, type HostsOptions } from './host-pool.ts';

/**
 * Ours: a bundle usually loads in 0.1 to 3 s of CPU time. A wait at its top level ends after the
 * wall time, which gives a loaded machine forty times the time of the work.
 */
const INTROSPECTION: WorkLimits = { cpuMs: 30_000, wallMs: 120_000 };

/** Logged for a run while it has no thread. */
const WAITING =
  'this run waits: threads of earlier invocations of this project are still in native code';

/** One invocation, as a host needs it. */
export type Invoke = {
  invocationId: string;
  projectId: string;
  bundle: Bundle;
  functionName: string;
  paramsJson: string;
  /** For the handler only. */
  secrets: readonly SecretWork[];
  sessionId: string;
  signingKey: string;
  region: string;
  /** The session's relay. */
  relay: UpgradeHandler;
  onLines(lines: LogLine[]): void;
  /** Aborts the run: ctx.signal aborts, the thread ends soon after, then the process. */
  signal: AbortSignal;
};
export type InvokeOutcome = Exclude<RunOutcome, { type: 'manifests' }>;

/** Finds the functions that a bundle defines, in a process of its own, for a build. */
type Introspect = {
  projectId: string;
  bundle: Bundle;
  /** INTROSPECTION when absent. */
  limits?: WorkLimits;
  onLine(line: LogLine): void;
  signal: AbortSignal;
};
type Introspected =
  /** JSON written by the tenant; the caller must validate it. */
  | { ok: true; manifests: unknown }
  | { ok: false; code: 'TIMED_OUT' | 'BUILD_ERROR'; message: string };

export type Hosts = AsyncDisposable & {
  invoke(invoke: Invoke): Promise<InvokeOutcome>;
  introspect(introspect: Introspect): Promise<Introspected>;
  /** Threads in use, including those that only settle. */
  threads(): number;
  /** Keeps no more spare hosts: the runner drains. */
  retire(): void;
};

export function openHosts(options: HostsOptions): Hosts {
  const pool = new HostPool(options);
  return {
    async invoke(invoke) {
      const { invocationId: id, sessionId, signingKey, bundle, signal, onLines } = invoke;
      const { functionName, paramsJson, region } = invoke;
      const onWait = (): void =>
        onLines([{ level: 'warn', message: WAITING, timestamp: steadyClock()() }]);
      const host = await pool.of(invoke.projectId, { signal, onWait }).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (host === undefined) return { type: 'aborted' };
      using _registered = host.broker.register(signingKey, invoke.relay);
      try {
        const session = { id: sessionId, connectUrl: host.connectUrl(signingKey) };
        const secrets = invoke.secrets.map(({ secretKey, value }) => [secretKey, value]);
        const secretsJson = JSON.stringify(Object.fromEntries(secrets));
        const values = invoke.secrets.map(({ value }) => value).filter(isMasked);
        const work = { id, bundle: bundle.sha256, functionName, paramsJson, session, region };
        const order = { type: 'invoke', ...work, secretsJson } as const;
        const outcome = await host.run(order, bundle, { onLines, values, signal });
        if (await isOurFault(outcome, bundle)) {
          host.kill('a bundle in its directory is damaged');
          return DAMAGED;
        }
        return outcome.type === 'manifests' ? UNEXPECTED : outcome;
      } finally {
        pool.release(host);
      }
    },
    introspect: (introspect) => introspected(pool, introspect),
    threads: () => pool.threads(),
    retire: () => pool.retire(),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/** Whether the file is not a bundle because its bytes differ from the build's. */
async function isOurFault(outcome: RunOutcome, { path, sha256 }: Bundle): Promise<boolean> {
  if (outcome.type !== 'failure' || outcome.message !== NO_REGISTRY) return false;
  return (await hashOf(path)) !== sha256;
}

const DAMAGED: Failure = {
  ...NO_OUTCOME,
  code: 'INTERNAL_ERROR',
  message: 'the bundle of the function is damaged on the runner',
};

/** A host answered an invocation with manifests: only a tenant's own code can do that. */
const UNEXPECTED: Failure = {
  ...NO_OUTCOME,
  message: "the function's process violated the host protocol",
};

async function introspected(pool: HostPool, introspect: Introspect): Promise<Introspected> {
  const { bundle, limits = INTROSPECTION, onLine, signal } = introspect;
  const host = await pool.fresh();
  using limit = limitWork(() => host.cpuMs(), limits);
  try {
    const order = { type: 'introspect', id: randomUUID(), bundle: bundle.sha256 } as const;
    const outcome = await host.run(order, bundle, {
      onLines: (lines) => lines.forEach(onLine),
      signal: AbortSignal.any([limit.signal, signal]),
    });
    if (outcome.type === 'manifests') return { ok: true, manifests: JSON.parse(outcome.json) };
    if (outcome.type === 'aborted') {
      const why = limit.signal.reason as Error | undefined;
      const message = `the load of the entry file ${why?.message ?? 'was aborted'}`;
      return { ok: false, code: 'TIMED_OUT', message };
    }
    const why = outcome.type === 'failure' ? outcome : UNEXPECTED;
    const message = why.stack || [why.name, why.message].filter(Boolean).join(': ');
    return { ok: false, code: 'BUILD_ERROR', message };
  } finally {
    host.kill('its build has ended');
    await host.ended;
  }
}
