/**
 * The sender thread: DNS, TLS and HTTP of hostile endpoints are parsed here only. It exchanges the
 * messages of messages.ts with the main thread. A crash ends the thread, not the process; the
 * supervisor starts another.
 */
import { getPriority, setPriority } from 'node:os';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { must } from '../../proto/common/must.ts';
import { openPools } from './connection-pools.ts';
import type { Claimed, FromThread, ThreadOptions, ToThread } from './messages.ts';
import { type Link, Sender } from './send-loop.ts';
import { dnsResolver, openGuard } from './ssrf-guard.ts';

if (isMainThread) throw new Error('gateway/webhooks/sender-thread.ts must run in a thread');

type Waiter = Omit<PromiseWithResolvers<Claimed>, 'promise'>;

/**
 * Lower priority, so that a burst of deliveries does not delay the store's thread or HTTP: on two
 * cores with equal priorities a commit took 50% longer. Ours, by measurement.
 */
const NICENESS = 5;

// On Linux a priority is per thread; elsewhere it would apply to the process. A service that runs
// with a lower one keeps it: only root may raise it.
if (process.platform === 'linux' && getPriority() < NICENESS) setPriority(NICENESS);

const port = must(parentPort, 'port to the parent');
const { allow, ca, budget, dnsServers } = workerData as ThreadOptions;
const waiting = new Map<number, Waiter>();
let nextId = 0;

const guard = openGuard(allow, dnsResolver(dnsServers));
const pools = openPools(guard, ca);
const link: Link = {
  async claim(max, signal) {
    const { id, answer } = request((id) => ({ kind: 'claim', id, max }));
    const leave = () => post({ kind: 'leave', id });
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await answer;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  },
  report: (reports, max) => request((id) => ({ kind: 'report', id, reports, max })).answer,
  dropped: (count) => post({ kind: 'dropped', count }),
};
const sender = new Sender(link, { pools, ...(budget && { budget }) });

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'claimed':
      settle(message.id).resolve(message.claimed);
      return;
    case 'failed':
      settle(message.id).reject(new Error('core did not accept the call'));
      return;
    case 'close':
      void close(message.maxMs);
      return;
  }
});

async function close(maxMs: number): Promise<void> {
  await sender.end(maxMs);
  await pools[Symbol.asyncDispose]();
  port.close();
}

function request(message: (id: number) => FromThread) {
  const id = nextId++;
  const { promise: answer, ...waiter } = Promise.withResolvers<Claimed>();
  waiting.set(id, waiter);
  post(message(id));
  return { id, answer };
}

function settle(id: number): Waiter {
  const waiter = must(waiting.get(id), 'pending request');
  waiting.delete(id);
  return waiter;
}

function post(message: FromThread): void {
  port.postMessage(message);
}
