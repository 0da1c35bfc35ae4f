/**
 * Clients that invoke a function without pause and write down what was acknowledged. A client that
 * is told nothing (the service died in between) writes nothing down: that invocation may exist or
 * not.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { invoke, isOver } from '../support/clients/functions.ts';
import type { Stack } from '../support/service/stack.ts';

/**
 * A client stops waiting for an invocation after this and goes on: its fate is checked at the end.
 */
const PATIENCE_MS = 2_000;
const POLL_MS = 30;

export type Load = {
  /** Ids of invocations that were answered 202. */
  acknowledged: readonly string[];
  /** What the failed requests said, each once: they fail while the service is down. */
  failures: ReadonlySet<string>;
  /** Lets each client finish what it does, and ends. */
  stop(): Promise<void>;
} & AsyncDisposable;

/** Starts the clients. */
export function startLoad(stack: Pick<Stack, 'call'>, functionId: string, clients: number): Load {
  const acknowledged: string[] = [];
  const failures = new Set<string>();
  const stopped = new AbortController();
  const client = async (name: string) => {
    for (let n = 0; !stopped.signal.aborted; n++) {
      try {
        const { id } = await invoke(stack, functionId, { client: name, n });
        acknowledged.push(id);
        await watched(stack, id);
      } catch (error) {
        failures.add(String(error)); // refused or cut off: nothing was promised
        await pause(POLL_MS);
      }
    }
  };
  const running = Array.from({ length: clients }, (_, index) => client(`client ${index}`));
  const stop = async () => {
    stopped.abort();
    await Promise.all(running);
  };
  return { acknowledged, failures, stop, [Symbol.asyncDispose]: stop };
}

/** Reads the invocation until it is over or patience is. */
async function watched(stack: Pick<Stack, 'call'>, id: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    const { status } = await stack.call<{ status: string }>(`/v1/functions/invocations/${id}`);
    if (isOver(status)) return;
    await pause(POLL_MS);
  }
}
