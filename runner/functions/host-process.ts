/**
 * Starts a function host: its directory, its sockets, its jail; its protocol is in
 * host-connection.ts.
 *
 * STARTING -> READY -> ENDED. It ends by itself (the tenant's code), or is killed: idle, not needed
 * any more, after a protocol violation, or when it did not end a run in time. Its directory is
 * removed when it has ended.
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
/** Of the process's own output; for crash reports. */
const TAIL_BYTES = 20 * 1024;
/**
 * Of memory in use, all threads together. Ours: it is above four full heaps. The limit of one
 * process (host-jail.ts) ends a thread before that; this one ends what escapes that limit.
 */
export const MEMORY_MAX_BYTES = 1_792 * 2 ** 20;

export type HostOptions = {
  jail: Jail;
  runtime: Runtime;
  /** For functions that do not set it themselves. */
  isolation: Isolation;
  /** Its own directory, which must not exist yet. */
  dir: string;
  openEgress: OpenEgress | undefined;
  memoryMaxBytes: number;
  /** Aborts a start; after the start, kill the host instead. */
  signal: AbortSignal;
  /** 60 s by default. */
  startTimeoutMs?: number;
  log: Log;
};

/** Resolves when the host is ready; throws when it did not start. */
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
  early.catch(() => {}); // it may also end after the start, when nothing waits for `early` any more
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
