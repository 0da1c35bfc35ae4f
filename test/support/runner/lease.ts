/** A runner and a lease that the test itself acknowledges, releases and loses. */
import { openLog } from '../../../proto/common/log.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { RunnerContext } from '../../../runner/common/runner-context.ts';
import { type Lease, openLease } from '../../../runner/leases/lease.ts';

const never = new AbortController().signal;
const silent = openLog({ role: 'test', level: 'silent' });

/** `clients` has the methods that the test needs. */
export function testRunner(
  given: Partial<Omit<RunnerContext, 'clients'>> & { clients?: object } = {},
): RunnerContext {
  return {
    identity: { runnerId: 'r', instanceId: 'i' },
    call: {},
    runDir: '/nonexistent',
    log: silent,
    now: Date.now,
    draining: never,
    ending: never,
    stopped: never,
    ...given,
    clients: { runners: {}, blobs: {}, ...given.clients } as Pick<Clients, 'runners' | 'blobs'>,
  };
}

type Given = {
  acknowledged?: Promise<void> | undefined;
  lost?: AbortSignal | undefined;
  released?: AbortSignal | undefined;
  /** Core's answer to a part of a log: whether the log is full. */
  append?: Lease['append'];
};

export function testLease(
  id: string,
  {
    acknowledged = Promise.resolve(),
    lost = never,
    released = never,
    append = async () => false,
  }: Given = {},
  runner: RunnerContext = testRunner(),
): Lease {
  const held = {
    id,
    acknowledged,
    lost,
    released,
    append,
    pauseOf: (_id: string, ms: number) => ms,
    waitOf: () => 0,
    async report(send: () => Promise<boolean>) {
      await send();
    },
    [Symbol.dispose]() {},
  };
  return openLease(held, runner);
}
