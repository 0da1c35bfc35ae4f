/**
 * Launches one Chrome: its directory, its jail, its egress, its pipe.
 *   starting -> ready (its default page exists) -> gone -> directory removed, `exited` settles
 * However it ends - close(), a crash, a hang, the runner's death - no process is left; after a
 * killed runner, the next runner's sweep removes the directory.
 */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { Log } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Egress } from '../jail/egress/egress-proxy.ts';
import { LISTENER_PORT, openListener, receiveListener } from '../jail/egress/listener.ts';
import type { Exit, Jail, Jailed } from '../jail/jail.ts';
import { openPipe, type Pipe } from './cdp/pipe.ts';
import { type ContextProxies, openContextProxies } from './context-proxies.ts';
import { extensionLoaded, type LoadedExtension, ownExtension } from './extension.ts';
import type { Engine } from './find.ts';
import { watchHeart } from './hang-detector.ts';
import { chromeSpec, DIRS, type Paths } from './jail.ts';

/** Ours: a cold start on a busy machine took 3 s. */
const READY_TIMEOUT_MS = 30_000;
/** Ours: Browser.close takes 40 to 100 ms, to write its cookies. */
const CLOSE_TIMEOUT_MS = 2_000;
/** The end of its stderr, for crash reports. */
const STDERR_MAX_CHARS = 20_000;
const RM = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;

export type LaunchOptions = {
  engine: Engine;
  jail: Jail;
  /** Whether Chrome's own sandbox works in the jail (canNest). */
  hasSandbox: boolean;
  /** The parent of Chrome's directory. */
  runDir: string;
  /** Its network access; closed with it. */
  egress: Egress;
  log: Log;
  /** A user-data directory of the caller, which is kept; otherwise a new one, which is removed. */
  profileDir?: string;
  /** Loaded before Chrome is ready; for full Chromium. */
  extension?: LoadedExtension;
  /** Accepts any certificate. */
  ignoreCertificateErrors?: boolean;
  /** Runs with a lower priority than the Chromes of sessions. */
  isBackground?: boolean;
  /** Limit of memory in use; absent: none. */
  memoryMaxBytes?: number;
};

export type Chrome = {
  id: string;
  /** On this machine; contains downloads/ and uploads/. */
  dir: string;
  /** The same two as Chrome sees them. */
  paths: Paths;
  pipe: Pipe;
  kind: Engine['kind'];
  /** Its network access. */
  egress: Pick<Egress, 'steer' | 'bytes' | 'errors' | 'onRefusal'>;
  /** Of its browser contexts. */
  proxies: ContextProxies;
  /** Settles when no process and no directory is left; never rejects. */
  exited: Promise<Exit>;
  /** The exceeded limit that ended it, once its pipe is closed. */
  exitReason(): string | undefined;
  /**
   * Lets it write its profile and exit; kills it after `timeoutMs`, 2 s by default. Settles with
   * `exited`.
   */
  close(timeoutMs?: number): Promise<void>;
  /** Kills it. */
  kill(): void;
};

/** The message for a Chrome that ended unexpectedly. */
export function lossReason(chrome: Pick<Chrome, 'exitReason'>): string {
  const why = chrome.exitReason();
  return why === undefined ? 'the browser was lost' : `the browser was lost: ${why}`;
}

/** Throws when Chrome does not start; nothing is left of it then. */
export async function launchChrome(options: LaunchOptions): Promise<Chrome> {
  const { runDir, egress, profileDir } = options;
  const id = randomUUID();
  const dir = join(runDir, `chrome-${id}`);
  try {
    await Promise.all(DIRS.map((name) => mkdir(join(dir, name), { recursive: true, mode: 0o700 })));
    const extension = options.extension && (await ownExtension(options.extension, dir));
    const place = { ...options, id, dir, profileDir: profileDir ?? join(dir, 'profile') };
    return await launchIn({ ...place, ...(extension && { extension }) });
  } catch (error) {
    egress.close();
    await rm(dir, RM);
    throw error;
  }
}

type Place = LaunchOptions & { id: string; dir: string; profileDir: string };

async function launchIn(place: Place): Promise<Chrome> {
  const { jail, egress, log, id, dir } = place;
  const local = jail.hasOwnNetwork ? undefined : await openListener(egress.handle);
  const { spec, paths } = await chromeSpec(place, local);
  const jailed = jail.launch(spec);
  const { child } = jailed;
  const why = (): string | undefined => jailed.exitReason?.();
  const stderr = keepTail(child);
  const pipe = openPipe(child.stdio[3] as Writable, child.stdio[4] as Readable);
  const port = local === undefined ? LISTENER_PORT : (local.address() as AddressInfo).port;
  const proxies = openContextProxies({ egress, pipe }, { port, isShared: local !== undefined });
  const listener: Promise<Server> = local
    ? Promise.resolve(local)
    : receiveListener(child, egress.handle);
  const exited = jailed.exited.then(async (exit) => {
    // a listener that arrived after the end, or for a Chrome that failed, would stay open forever
    await listener.then(
      (server) => server.close(),
      () => undefined,
    );
    egress.close();
    await rm(dir, RM).catch((error: unknown) => {
      log.error({ chrome: id, error: String(error) }, 'cannot remove the directory of a Chrome');
    });
    return exit;
  });
  try {
    const died = jailed.exited.then(({ code, signal }) => {
      throw new Error(why() ?? `it ended (${signal ?? code})`);
    });
    died.catch(() => undefined); // handled below while the start is pending
    await Promise.race([Promise.all([listener, ready(pipe, paths)]), died]);
    if (place.extension) await extensionLoaded(pipe, place.extension);
  } catch (error) {
    jailed.kill();
    await exited;
    if (error instanceof UnsupportedSessionError) throw error;
    const said = stderr().trim().slice(-1000) || 'nothing';
    throw new Error(`Chrome did not start: ${String(error)}; it said: ${said}`, { cause: error });
  }
  const stopWatching = watchHeart(pipe, () => {
    log.error({ chrome: id }, 'a Chrome does not respond and was killed');
    jailed.kill();
  });
  let isClosing = false;
  void jailed.exited.then((exit) => {
    stopWatching();
    if (isClosing) return;
    log.warn({ chrome: id, ...exit, why: why(), said: stderr().slice(-1000) }, 'Chrome ended');
  });
  return {
    id,
    dir,
    paths,
    pipe,
    kind: place.engine.kind,
    egress,
    proxies,
    exited,
    exitReason: why,
    kill() {
      isClosing = true;
      jailed.kill();
    },
    async close(timeoutMs = CLOSE_TIMEOUT_MS) {
      isClosing = true;
      await end(pipe, jailed, timeoutMs);
      await exited;
    },
  };
}

/**
 * Ready means: it responds, and its default page exists. The commands are sent at once, before
 * Chrome reads: it executes them in order, so later ones find that page.
 */
async function ready(pipe: Pipe, { downloads }: Paths): Promise<void> {
  const behavior = { behavior: 'allowAndName', downloadPath: downloads, eventsEnabled: true };
  await Promise.all([
    pipe.call('Browser.setDownloadBehavior', behavior, READY_TIMEOUT_MS),
    pipe.call('Target.createTarget', { url: 'about:blank' }, READY_TIMEOUT_MS),
  ]);
}

async function end(pipe: Pipe, jailed: Jailed, timeoutMs: number): Promise<void> {
  // the response may be lost with the pipe; the exit counts
  pipe.call('Browser.close').catch(() => undefined);
  const timer = setTimeout(jailed.kill, timeoutMs);
  await jailed.exited;
  clearTimeout(timer);
}

function keepTail(child: ChildProcess): () => string {
  let tail = '';
  must(child.stderr, 'stderr')
    .setEncoding('utf8')
    .on('data', (text: string) => {
      tail = (tail + text).slice(-STDERR_MAX_CHARS);
    });
  return () => tail;
}
