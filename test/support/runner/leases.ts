/** Leases whose renewals run in this thread, against a stub of core. */
import { type Leases, openLeases } from '../../../runner/leases/leases.ts';
import { openRenewals } from '../../../runner/leases/renewals.ts';

type Renewals = Parameters<typeof openRenewals>[0];

export type LocalLeases = Leases & {
  /** Settles when the signal has aborted and no renewal is in progress. */
  renewing: Promise<void>;
};

export function localLeases(
  options: Omit<Renewals, 'send'> & { onSuperseded(): void; stopped: AbortSignal },
): LocalLeases {
  const { clients, call, runner, log, leaseMs, onSuperseded, stopped } = options;
  let renewing = Promise.resolve();
  const leases = openLeases({
    clients,
    call,
    runner,
    log,
    leaseMs,
    onSuperseded,
    stopped,
    isBrowserFailing: () => false,
    onFailed: (error) => {
      throw error;
    },
    openThread({ receive }) {
      // asynchronously and in order, as between threads
      const send = (message: Parameters<typeof receive>[0]) =>
        queueMicrotask(() => receive(message));
      const renewals = openRenewals({ ...options, send });
      ({ renewing } = renewals);
      return { send: renewals.receive, async [Symbol.asyncDispose]() {} };
    },
  });
  return { ...leases, renewing };
}
