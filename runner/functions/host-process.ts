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
import { memoryOf } from '../jail/cgroups/memory-watch.ts';
import { cpuMsOf } from '../jail/cpu-limit.ts';
import type { Jailed } from '../jail/jail.ts';
import { HostConnection } from './host-connection.ts';
import { type HostSpec, hostSpec } from './host-jail.ts';
import { type HostSockets, type OpenEgress, openHostSockets } from './host-sockets.ts';

/** Ours: a cold start takes 100 to 300 ms; a machine under load needs tens of seconds. */
const START_TIMEOUT_MS = 60_000;
/** Of the process's own output; for crash reports. */
const TAIL_BYTES = 20 * 1024;
/**
 * Of memory in use, all threads together. Ours: it is above four full heaps. The limit of one
 * process (host-jail.ts) ends a thread before that; this one ends what escapes that limit.
 */
export const MEMORY_MAX_BYTES = 1_792 * 2 ** 20;

export type HostOptions = HostSpec & {
  openEgress: OpenEgress | undefined;
  /** Aborts a start; after the start, kill the host instead. */
  signal: AbortSignal;
  /** 60 s by default. */
  startTimeoutMs?: number;
  log: Log;
};

/** Resolves when the host is ready; throws when it did not start. */
export async function startHost(options: HostOptions): Promise<HostConnection> {
  const { dir, jail } = options;
  await using opening = new AsyncDisposableStack();
  opening.defer(() => removeTree(dir));
  await mkdir(join(dir, 'fn'), { recursive: true });
  const sockets = opening.use(await openHostSockets(dir, options));
  const jailed = jail.launch(await hostSpec(options, sockets));
  const own = opening.move();
  const ended = jailed.exited.then(() => own.disposeAsync());
  try {
    return await connected({ jailed, sockets, ended }, options);
  } catch (error) {
    jailed.kill();
    await ended;
    throw error;
  }
}

async function connected(
  { jailed, sockets, ended }: { jailed: Jailed; sockets: HostSockets; ended: Promise<void> },
  { dir, log, signal, startTimeoutMs = START_TIMEOUT_MS }: HostOptions,
): Promise<HostConnection> {
  const { broker } = sockets;
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
    const deps = { jailed, dir, broker, ended, log, tail, memory, cpuMs };
    const host = new HostConnection(deps, socket);
    sockets.egress?.onRefusal(({ why, denied }) => {
      if (denied !== undefined) host.warn(why);
    });
    await until(Promise.race([host.ready, early]), over);
    log.debug({ pid }, 'function host is ready');
    return host;
  } finally {
    clearTimeout(timer);
  }
}
