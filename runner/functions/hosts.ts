/**
 * What the runner's work asks of function hosts: run one invocation, or find what a bundle defines.
 * One process per project, and a fresh one, used once, for each introspection.
 */
import { randomUUID } from 'node:crypto';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import { hashOf } from '../common/blob-cache.ts';
import { type LogLine, NO_REGISTRY } from '../host/messages.ts';
import { limitWork, type WorkLimits } from '../jail/cpu-limit.ts';
import type { UpgradeHandler } from '../sessions/server/key-authenticated-server.ts';
import type { Bundle } from './bundle-cache.ts';
import type { Failure, RunOutcome } from './host-connection.ts';
import { HostPool, type HostsOptions } from './host-pool.ts';

/**
 * Ours: a good bundle loads in 0.1 to 3 s of CPU time. A wait at its top level ends after the wall
 * time, which leaves a loaded machine forty times as long as the work takes.
 */
const INTROSPECTION: WorkLimits = { cpuMs: 30_000, wallMs: 120_000 };

/** What a run's log says while it has no thread. */
const WAITING =
  'this run waits: threads of earlier invocations of this project are still in native code';

/** One invocation, as a host needs it. */
export type Invoke = {
  invocationId: string;
  projectId: string;
  bundle: Bundle;
  functionName: string;
  paramsJson: string;
  sessionId: string;
  signingKey: string;
  region: string;
  /** The session's. */
  relay: UpgradeHandler;
  onLines(lines: LogLine[]): void;
  /** Ends the run: ctx.signal aborts, the thread ends soon after, the process at last. */
  signal: AbortSignal;
};
export type InvokeOutcome = Exclude<RunOutcome, { type: 'manifests' }>;

/** What a build asks for: the functions that a bundle defines, found in a process of its own. */
export type Introspect = {
  projectId: string;
  bundle: Bundle;
  /** INTROSPECTION when absent. */
  limits?: WorkLimits;
  onLine(line: LogLine): void;
  signal: AbortSignal;
};
export type Introspected =
  /** JSON of the tenant's making; its form is for the caller to check. */
  | { ok: true; manifests: unknown }
  | { ok: false; code: 'TIMED_OUT' | 'BUILD_ERROR'; message: string };

export type Hosts = AsyncDisposable & {
  invoke(invoke: Invoke): Promise<InvokeOutcome>;
  introspect(introspect: Introspect): Promise<Introspected>;
  /** Threads in use, those that only settle included. */
  threads(): number;
};

export function openHosts(options: HostsOptions): Hosts {
  const pool = new HostPool(options);
  return {
    async invoke(invoke) {
      const { signal, onLines } = invoke;
      const onWait = (): void =>
        onLines([{ level: 'warn', message: WAITING, timestamp: steadyClock()() }]);
      const host = await pool.of(invoke.projectId, { signal, onWait }).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (host === undefined) return { type: 'aborted' };
      using _registered = host.broker.register(invoke.signingKey, invoke.relay);
      try {
        const connectUrl = host.connectUrl(invoke.signingKey);
        const outcome = await host.run(
          {
            type: 'invoke',
            id: invoke.invocationId,
            bundle: invoke.bundle.sha256,
            functionName: invoke.functionName,
            paramsJson: invoke.paramsJson,
            session: { id: invoke.sessionId, connectUrl },
            region: invoke.region,
          },
          invoke.bundle,
          invoke,
        );
        if (await isOurFault(outcome, invoke.bundle)) {
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
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/** A file that is no bundle, where a build has found one: unless its bytes are the build's. */
async function isOurFault(outcome: RunOutcome, { path, sha256 }: Bundle): Promise<boolean> {
  if (outcome.type !== 'failure' || outcome.message !== NO_REGISTRY) return false;
  return (await hashOf(path)) !== sha256;
}

const DAMAGED: Failure = {
  type: 'failure',
  code: 'INTERNAL_ERROR',
  name: '',
  message: 'the bundle of the function is damaged on the runner',
  stack: '',
};

/** A host answered a run with manifests: only a tenant's own words can do that. */
const UNEXPECTED: Failure = {
  type: 'failure',
  code: 'WORKLOAD_ERROR',
  name: '',
  message: "the function's process broke the protocol of its host",
  stack: '',
};

async function introspected(pool: HostPool, introspect: Introspect): Promise<Introspected> {
  const { bundle, limits = INTROSPECTION, onLine, signal } = introspect;
  const host = await pool.fresh();
  using limit = limitWork(() => host.cpuMs(), limits);
  try {
    const outcome = await host.run(
      { type: 'introspect', id: randomUUID(), bundle: bundle.sha256 },
      bundle,
      {
        onLines: (lines) => lines.forEach(onLine),
        signal: AbortSignal.any([limit.signal, signal]),
      },
    );
    if (outcome.type === 'manifests') {
      return { ok: true, manifests: JSON.parse(outcome.json) };
    }
    if (outcome.type === 'aborted') {
      const why = limit.signal.reason as Error | undefined;
      const message = `the load of the entry file ${why?.message ?? 'was aborted'}`;
      return { ok: false, code: 'TIMED_OUT', message };
    }
    const why = outcome.type === 'failure' ? outcome : UNEXPECTED;
    const message = why.stack || [why.name, why.message].filter(Boolean).join(': ');
    return { ok: false, code: 'BUILD_ERROR', message };
  } finally {
    host.kill('its build is over');
    await host.ended;
  }
}
