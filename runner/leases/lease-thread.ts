/**
 * The lease thread: renews leases on its own connection to core. It ends the process when the main
 * thread is blocked; the runner's supervisor, such as `tabern serve`, starts another. SIGKILL,
 * because a blocked thread runs no signal handler; jails end with the process.
 */
import process from 'node:process';
import { parentPort, workerData } from 'node:worker_threads';
import { openLog } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import { RunnerServiceService } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Channel, remote } from '../../proto/rpc/remote.ts';
import type { LeaseThreadData } from './lease-worker.ts';
import { openRenewals, type ToThread } from './renewals.ts';
import { watchForStall } from './stall.ts';

const main = must(parentPort, 'the main thread');
const { core, coreTls, token, runner, leaseMs, logLevel, isForPeople } =
  workerData as LeaseThreadData;
const log = openLog({ role: 'runner', level: logLevel, people: isForPeople, sync: true });
const channel = new Channel(core, coreTls);

const { receive } = openRenewals({
  clients: { runners: remote(RunnerServiceService, channel) },
  call: { metadata: { authorization: `Bearer ${token}` } },
  runner,
  leaseMs,
  log,
  now: () => performance.now(),
  send: (message) => main.postMessage(message),
  signal: new AbortController().signal, // the main thread terminates this one
});
const watch = watchForStall({
  onStall(silentMs) {
    log.fatal({ silentMs }, 'the main thread is blocked: ending the process');
    process.kill(process.pid, 'SIGKILL');
  },
  onInspected(silentMs) {
    log.warn(
      { silentMs },
      'the main thread is blocked and its inspector is open: nothing is ended',
    );
  },
});
main.on('message', (message: ToThread) => {
  if (message.type === 'beat') watch.beat(message.isInspected);
  receive(message);
});
