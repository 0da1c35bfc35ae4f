/**
 * Starts a function host: its directory, its sockets, its jail; what it says is host-connection.ts.
 *
 * STARTING -> READY -> ENDED. It ends by itself (the tenant's code), or by a kill: idle or done
 * with, it said something that our host never says, or it did not end a run in time. When it has
 * ended its directory is gone.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { until } from '../common/abort.ts';
import { keepTail } from '../common/flow.ts';
import { removeTree } from '../common/remove.ts';
import type { Isolation } from '../host/worker.ts';
import { memoryOf } from '../jail/cgroups/memory-watch.ts';
import { cpuMsOf } from '../jail/cpu-limit.ts';
import type { Jail } from '../jail/jail.ts';
import { HostConnection, type HostProcess } from './host-connection.ts';
import { hostSpec } from './host-jail.ts';
import { type HostSockets, type OpenEgress, openHostSockets } from './host-sockets.ts';
import type { Runtime } from './runtime.ts';

/** Ours: a cold start takes 100 to 300 ms; a machine under load needs tens of seconds. */
const START_TIMEOUT_MS = 60_000;
/** Of what the process itself printed; for reports of a crash. */
const TAIL_BYTES = 20 * 1024;
/**
 * Of memory in use, threads and all. Ours: below it are four full heaps; what one process may
 * reserve (host-jail.ts) ends a thread before it, this ends what that does not hold.
 */
export const MEMORY_MAX_BYTES = 1_792 * 2 ** 20;

export type HostOptions = {
  jail: Jail;
  runtime: Runtime;
  /** Of functions that do not say it themselves. */
  isolation: Isolation;
  /** Its own, not there yet. */
  dir: string;
  openEgress: OpenEgress | undefined;
  memoryMaxBytes: number;
  /** Ends a start under way; whoever wants an end after it kills the host. */
  signal: AbortSignal;
  /** 20 s when not said. */
  startTimeoutMs?: number;
  log: Log;
};

/** Ready to run, or throws when it did not start. */
export async function startHost(options: HostOptions): Promise<HostProcess> {
  const { dir, jail, runtime, isolation, openEgress } = options;
  await using opening = new AsyncDisposableStack();
  opening.defer(() => removeTree(dir));
  await mkdir(join(dir, 'fn'), { recursive: true });
  const sockets = opening.use(await openHostSockets(dir, { jail, openEgress }));
  const { memoryMaxBytes } = options;
  const jailed = jail.launch(
    await hostSpec({ jail, runtime, isolation, dir, sockets, memoryMaxBytes }),
  );
  const own = opening.move();
  const ended = jailed.exited.then(() => own.disposeAsync());
  try {
    const parts = { jailed, sockets, dir, log: options.log, broker: sockets.broker, ended };
    return await connected(parts, options);
  } catch (error) {
    jailed.kill();
    await ended;
    throw error;
  }
}

type Parts = Omit<ConstructorParameters<typeof HostConnection>[0], 'tail' | 'memory' | 'cpuMs'> & {
  sockets: HostSockets;
};

async function connected(
  parts: Parts,
  { signal, startTimeoutMs = START_TIMEOUT_MS }: HostOptions,
): Promise<HostProcess> {
  const { jailed, sockets, log } = parts;
  const { stdout, stderr } = jailed.child;
  const tails = [stdout, stderr].map((stream) => stream && keepTail(stream, TAIL_BYTES));
  const tail = (): string => tails.map((read) => read?.() ?? '').join('');
  const failed = (how: string) => new Error(`the function host ${how}: ${tail().slice(-2_000)}`);

  const early = jailed.exited.then(({ code, signal }) => {
    throw failed(`ended at start (${signal ?? code})`);
  });
  early.catch(() => {}); // it may also end after the start, when nobody waits here any more
  const late = new AbortController();
  const fail = (): void => late.abort(failed(`was not ready in ${startTimeoutMs} ms`));
  const timer = setTimeout(fail, startTimeoutMs);
  const over = AbortSignal.any([late.signal, signal]);
  try {
    const socket = await until(Promise.race([sockets.control(jailed.child, over), early]), over);
    const { pid } = jailed.child;
    const memory = (): number => (pid === undefined ? 0 : memoryOf(pid));
    const cpuMs = (): number => (pid === undefined ? 0 : cpuMsOf(pid));
    const host = new HostConnection({ ...parts, tail, memory, cpuMs }, socket);
    await until(Promise.race([host.ready, early]), over);
    log.debug({ pid }, 'function host is ready');
    return host;
  } finally {
    clearTimeout(timer);
  }
}
