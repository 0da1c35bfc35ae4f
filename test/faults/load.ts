/**
 * Clients that invoke a function without pause and record the acknowledged ids. Without a response
 * (the service died) nothing is recorded: the invocation may exist or not.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { invoke, isOver } from '../support/clients/functions.ts';
import type { Stack } from '../support/service/stack.ts';

/** After this time a client continues without the invocation, which is checked at the end. */
const PATIENCE_MS = 2_000;
const POLL_MS = 30;

export type Load = {
  /** Ids of invocations with a 202 response. */
  acknowledged: readonly string[];
  /** The errors of failed requests, each once: requests fail while the service is down. */
  failures: ReadonlySet<string>;
  /** Ends after each client has finished its request. */
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
        failures.add(String(error)); // refused or cut off: not acknowledged
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

/** Polls the invocation until its end or a deadline. */
async function watched(stack: Pick<Stack, 'call'>, id: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    const { status } = await stack.call<{ status: string }>(`/v1/functions/invocations/${id}`);
    if (isOver(status)) return;
    await pause(POLL_MS);
  }
}
