/** One invocation with stubs of hosts, Chrome and core. */

import type { CompleteInvocationRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, type Reason } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { Chrome } from '../../../runner/browser/launch.ts';
import type { Invoke, InvokeOutcome } from '../../../runner/functions/hosts.ts';
import { type InvocationDeps, runInvocation } from '../../../runner/functions/run-invocation.ts';
import type { Lease } from '../../../runner/leases/lease.ts';
import { BROWSERS } from '../../support/runner/browsers.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';

export type Scene = {
  /** `acts`: the events so far. */
  invoke?: (invoke: Invoke, crash: () => void, acts: string[]) => Promise<InvokeOutcome>;
  take?: () => Promise<Chrome>;
  timeoutMs?: number;
  acknowledged?: Promise<void>;
  lost?: AbortSignal;
  released?: AbortSignal;
  stopped?: AbortSignal;
  /** Reports that fail because core is away, and the reason. */
  away?: number;
  /** Why its Chrome was ended. */
  overMemory?: string;
  why?: Reason;
  /** Its Chrome's directory cannot be removed. */
  isStuck?: boolean;
  onTold?: () => void;
};

/** Runs it. Returns the reported outcomes, and the events in order. */
export async function run(scene: Scene) {
  const told: CompleteInvocationRequest[] = [];
  const acts: string[] = [];
  let away = scene.away ?? 0;
  const pipe = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const chrome = {
    dir: '/nowhere',
    pipe: { closed: pipe.promise, onEvent: () => () => {} },
    egress: { onRefusal() {} },
    exited: gone.promise.then(() => {
      acts.push('chrome gone');
      if (scene.isStuck) throw new Error('the disk says no');
    }),
    kill() {
      acts.push('chrome killed');
      gone.resolve();
    },
    exitReason: () => scene.overMemory,
  } as unknown as Chrome;
  const never = new AbortController().signal;
  const runners = {
    async completeInvocation(request: CompleteInvocationRequest) {
      if (away-- > 0) throw new Fault(scene.why ?? 'CORE_UNAVAILABLE', 'away');
      acts.push('told');
      scene.onTold?.();
      told.push(request);
      return { accepted: true };
    },
  } as unknown as Clients['runners'];
  const runner = testRunner({
    clients: { runners },
    now: () => 7,
    stopped: scene.stopped ?? never,
  });
  const deps: InvocationDeps = {
    runner,
    ...BROWSERS,
    bundles: { get: async () => ({ path: '/', sha256: '' }) },
    chromes: { take: scene.take ?? (async () => chrome) },
    hosts: {
      invoke: async (invoke) =>
        scene.invoke?.(invoke, pipe.resolve, acts) ?? { type: 'result', json: '1' },
    },
    sessionServer: {
      register(signingKey) {
        acts.push(`${signingKey} in`);
        return { [Symbol.dispose]: () => void acts.push(`${signingKey} out`) };
      },
    },
  };
  const { acknowledged, lost, released } = scene;
  const append: Lease['append'] = async (entry) => {
    if (entry.kind === 'lines') acts.push(`${entry.lines.lines.length} lines`);
    return false;
  };
  const lease = testLease('lease', { acknowledged, lost, released, append }, runner);
  const { timeoutMs = 60_000 } = scene;
  const work = { ...NO_WORK, timeoutMs };
  // timers of AbortSignal.timeout keep no process alive; sockets do in a real runner
  const awake = setInterval(() => {}, 1_000);
  await runInvocation(work, lease, deps).finally(() => clearInterval(awake));
  return { told, acts, outcome: told[0]?.outcome };
}

const NO_WORK = {
  invocationId: 'i',
  projectId: 'p',
  sessionId: 's',
  versionId: 'v',
  functionName: 'f',
  bundleBlobId: 'b',
  bundleSha256: '',
  paramsJson: '{}',
  // this Chrome sends no messages
  sessionParamsJson: '{"browserSettings":{"logSession":false}}',
  region: 'r',
  signingKey: 'k',
  context: undefined,
  extension: undefined,
  moreExtensions: [],
  caCertificates: [],
  secrets: [],
};

/** As a host does: when the signal aborts, the run was aborted. */
export function untilAborted({ signal }: Pick<Invoke, 'signal'>): Promise<InvokeOutcome> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ type: 'aborted' }));
  });
}
