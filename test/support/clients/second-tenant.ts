/**
 * A second tenant beside an attack: a separate project with a session that the attack may not delay
 * or end. `await using tenant = await openSecondTenant(stack)`.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import * as assert from 'uvu/assert';
import { until } from '../poll.ts';
import { operatorOf } from '../service/operator.ts';
import type { Stack } from '../service/stack.ts';
import type { Clocks, SecondTenantData } from './second-tenant-thread.ts';

/** The guarantee for a second tenant. */
const ROUND_TRIP_MAX_MS = 1_000;
export type SecondTenant = AsyncDisposable & {
  /**
   * The times since the last call, after this number of further rounds of each clock. Throws when
   * the session or its connection has ended or hangs.
   */
  after(rounds: number): Promise<Clocks>;
};

export async function openSecondTenant(stack: Stack): Promise<SecondTenant> {
  const apiKey = await keyOfNewProject(stack.dataDir);
  const headers = { 'x-svc-api-key': apiKey, 'content-type': 'application/json' };
  const body = JSON.stringify({ keepAlive: true });
  const answer = await fetch(`${stack.url}/v1/sessions`, { method: 'POST', headers, body });
  const { id, connectUrl } = (await answer.json()) as { id: string; connectUrl: string };
  // under load, the response to a create is sent before the browser has started
  await until(async () => {
    const found = await fetch(`${stack.url}/v1/sessions/${id}`, { headers });
    const { status } = (await found.json()) as { status: string };
    assert.ok(status === 'PENDING' || status === 'RUNNING', status);
    return status === 'RUNNING';
  });
  const workerData: SecondTenantData = {
    url: stack.url,
    apiKey,
    id,
    connectUrl,
    runnerPid: await stack.runnerPid(),
    servicePid: stack.pid,
  };
  const worker = new Worker(new URL('./second-tenant-thread.ts', import.meta.url), { workerData });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {}); // each report rejects with it
  worker.once('error', reject);
  const next = () => Promise.race([once(worker, 'message'), failed]);
  await next();
  const report = async () => {
    const [clocks] = (await Promise.all([next(), worker.postMessage('report')]))[0] as [Clocks];
    return clocks;
  };
  return {
    async after(rounds) {
      let all = await report();
      const wanted = all.rounds + rounds;
      await until(async () => {
        all = worst(all, await report());
        return all.rounds >= wanted;
      });
      return all;
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

function worst(a: Clocks, b: Clocks): Clocks {
  return {
    tripMs: Math.max(a.tripMs, b.tripMs),
    getMs: Math.max(a.getMs, b.getMs),
    controlMs: Math.max(a.controlMs, b.controlMs),
    rounds: b.rounds,
  };
}

/** The violation in the times; undefined without one. */
export function slowness({ tripMs, getMs, controlMs }: Clocks): string | undefined {
  const limitMs = ROUND_TRIP_MAX_MS + controlMs; // plus the delay of the machine itself
  if (Math.max(tripMs, getMs) <= limitMs) return undefined;
  return `round trip ${tripMs} ms, GET ${getMs} ms, control ${controlMs} ms`;
}

/** Creates a project on the same service; returns its API key. */
export async function keyOfNewProject(dataDir: string): Promise<string> {
  using operator = operatorOf(dataDir);
  const { operators, options } = operator;
  const name = 'second-tenant';
  await operators.createProject({ name, limits: undefined }, options);
  const { key } = await operators.createApiKey({ project: name, name: 'clock' }, options);
  return key;
}
