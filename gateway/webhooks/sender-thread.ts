/**
 * The sender thread: DNS, TLS and HTTP of hostile endpoints are parsed here only. Its start data
 * lists the addresses that it may reach, and it exchanges the messages of messages.ts with the main
 * thread. open -> (close) -> closed. A crash ends the thread, not the process; the supervisor
 * starts another.
 */
import { setPriority } from 'node:os';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { must } from '../../proto/common/must.ts';
import { openPools } from './connection-pools.ts';
import type { Claimed, FromThread, ThreadOptions, ToThread } from './messages.ts';
import { type Link, startSender } from './send-loop.ts';
import { dnsResolver, openGuard } from './ssrf-guard.ts';

if (isMainThread)
  throw new Error('gateway/webhooks/sender-thread.ts runs in a thread of its own only');

type Waiter = { resolve: (value: Claimed) => void; reject: (error: Error) => void };

/**
 * Lower priority, so that a burst of deliveries does not delay the store's thread or HTTP: on two
 * cores with equal priorities a commit took 50% longer. Ours, by measurement.
 */
const NICENESS = 5;

// On Linux a priority is per thread; elsewhere it would apply to the process.
if (process.platform === 'linux') setPriority(NICENESS);

const port = must(parentPort, 'port to the parent');
const { allow, ca, budget, dnsServers } = workerData as ThreadOptions;
const waiting = new Map<number, Waiter>();
let nextId = 0;

const guard = openGuard(allow, dnsResolver(dnsServers));
const pools = openPools(guard, ca);
const link: Link = {
  async claim(max, signal) {
    const asked = ask((id) => ({ kind: 'claim', id, max }));
    const leave = () => tell({ kind: 'leave', id: asked.id });
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await asked.answer;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  },
  report: (reports, max) => ask((id) => ({ kind: 'report', id, reports, max })).answer,
  dropped: (count) => tell({ kind: 'dropped', count }),
};
const sender = startSender(link, { pools, ...(budget && { budget }) });

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'claimed':
      settle(message.id).resolve(message.claimed);
      return;
    case 'failed':
      settle(message.id).reject(new Error('core did not take the call'));
      return;
    case 'close':
      void close(message.maxMs);
      return;
  }
});

async function close(maxMs: number): Promise<void> {
  await sender.end(maxMs);
  await pools[Symbol.asyncDispose]();
  tell({ kind: 'closed' });
  port.close();
}

function ask(message: (id: number) => FromThread) {
  const id = nextId++;
  const { promise, resolve, reject } = Promise.withResolvers<Claimed>();
  waiting.set(id, { resolve, reject });
  tell(message(id));
  return { id, answer: promise };
}

function settle(id: number): Waiter {
  const waiter = must(waiting.get(id), 'question');
  waiting.delete(id);
  return waiter;
}

function tell(message: FromThread): void {
  port.postMessage(message);
}
