/**
 * Handoffs of this runner's sessions to a person. Core decides and stores them; this is what the
 * runner knows of them. A session's live view shows the pending one, its lifetime waits for it, and
 * the client that requested it hears of its end.
 */
import type { AwaitHandoffsResponse, LeasedHandoff } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { retryCall } from '../common/core-calls.ts';
import type { Lease } from '../leases/lease.ts';

export type PendingHandoff = Pick<LeasedHandoff, 'id' | 'instructions'>;

/** Those of one session. */
export type SessionHandoffs = Disposable & {
  readonly pending: PendingHandoff | undefined;
  /** Called after each change of `pending`. */
  onChange(listener: () => void): void;
  /** Rejects with a Fault. `ended` gets COMPLETED, CANCELLED or EXPIRED, once. */
  request(
    wanted: { instructions: string; timeout?: number | undefined; keyId: string },
    ended: (status: string) => void,
  ): Promise<{ id: string; url: string }>;
  /** Path and query of a live view link that needs no API key. */
  link(keyId: string): Promise<string>;
  /** The person has finished. Never rejects: the page shows that the handoff is still pending. */
  finish(id: string): Promise<void>;
};

export type Handoffs = {
  /** Until it is disposed. */
  ofLease(lease: Pick<Lease, 'id' | 'call'>): SessionHandoffs;
  /** Pending ones, and those whose end a client waits for. */
  readonly knownIds: string[];
  /** What core has answered. */
  apply(found: AwaitHandoffsResponse): void;
};

type Session = { leaseId: string; notify(): void };

export function openHandoffs(clients: Pick<Clients, 'runners'>): Handoffs {
  const sessions = new Set<Session>();
  const awaited = new Map<string, (status: string) => void>();
  let pending: LeasedHandoff[] = [];
  const pendingOf = (leaseId: string): PendingHandoff | undefined =>
    pending.find((one) => one.leaseId === leaseId);

  return {
    get knownIds() {
      return [...new Set([...pending.map(({ id }) => id), ...awaited.keys()])];
    },
    apply({ handoffs, ended }) {
      const before = pending;
      pending = handoffs;
      for (const { id, status } of ended) {
        awaited.get(id)?.(status);
        awaited.delete(id);
      }
      for (const session of sessions) {
        const was = before.find(({ leaseId }) => leaseId === session.leaseId);
        if (was?.id !== pendingOf(session.leaseId)?.id) session.notify();
      }
    },
    ofLease({ id: leaseId, call }) {
      const listeners = new Set<() => void>();
      const own = new Set<string>();
      const session = { leaseId, notify: () => listeners.forEach((listener) => void listener()) };
      sessions.add(session);
      return {
        get pending() {
          return pendingOf(leaseId);
        },
        onChange: (listener) => void listeners.add(listener),
        async request(wanted, ended) {
          const made = await clients.runners.requestHandoff({ leaseId, ...wanted }, call);
          awaited.set(made.id, ended);
          own.add(made.id);
          return made;
        },
        async link(keyId) {
          return (await clients.runners.linkLiveView({ leaseId, keyId }, call)).url;
        },
        async finish(id) {
          const report = () => clients.runners.finishHandoff({ leaseId, id }, call);
          await retryCall(report).catch(() => undefined);
        },
        [Symbol.dispose]() {
          sessions.delete(session);
          for (const id of own) awaited.delete(id);
        },
      };
    },
  };
}
