/**
 * Launches one Chrome: its directory, its jail, its door to the network, its pipe.
 *   starting -> ready (its default page is there) -> gone -> directory removed, `exited` settles
 * However it ends - close(), a crash, a hang, the runner's death - no process stays behind; of a
 * killed runner, the next one's sweep takes the directory.
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
/** What it said last, for the report of a crash. */
const STDERR_MAX_CHARS = 20_000;
const RM = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;

export type LaunchOptions = {
  engine: Engine;
  jail: Jail;
  /** Whether Chrome's own sandbox works in the jail (canNest). */
  hasSandbox: boolean;
  /** Where Chrome's directory is made. */
  runDir: string;
  /** Its traffic; closed with it. */
  egress: Egress;
  log: Log;
  /** A user-data directory of the caller's, who keeps it; else a fresh one, which goes. */
  profileDir?: string;
  /** To be loaded before it is ready; for full Chromium. */
  extension?: LoadedExtension;
  /** Any certificate will do. */
  ignoreCertificateErrors?: boolean;
  /** It steps back behind the Chromes of sessions. */
  isBackground?: boolean;
  /** In use, after which it is ended; absent: any. */
  memoryMaxBytes?: number;
};

export type Chrome = {
  id: string;
  /** On this machine: downloads/ and uploads/ are in it. */
  dir: string;
  /** The same two as Chrome sees them. */
  paths: Paths;
  pipe: Pipe;
  kind: Engine['kind'];
  /** Its way to the network. */
  egress: Pick<Egress, 'steer' | 'bytes' | 'errors' | 'onRefusal'>;
  /** Of its browser contexts. */
  proxies: ContextProxies;
  /** Settles when no process and no directory is left; never rejects. */
  exited: Promise<Exit>;
  /** The limit that it was ended for, once its pipe is closed. */
  exitReason(): string | undefined;
  /** Lets it write its profile and end, for 2 s when not said. Settles with `exited`. */
  close(timeoutMs?: number): Promise<void>;
  /** Ends it at once. */
  kill(): void;
};

/** What is said of a Chrome that ended and was not asked to. */
export function lossReason(chrome: Pick<Chrome, 'exitReason'>): string {
  const why = chrome.exitReason();
  return why === undefined ? 'the browser was lost' : `the browser was lost: ${why}`;
}

/** Throws when Chrome does not come up; nothing is left of it then. */
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
    // one that came after the end, or beside a Chrome that did not, would stay open for ever
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
    died.catch(() => undefined); // heard below while it matters
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
    log.error({ chrome: id }, 'Chrome hangs: killed');
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
 * Ready is: it answers, and its default page is there. Said all at once, before it can hear: it
 * takes commands in order, so whatever comes later finds that page.
 */
async function ready(pipe: Pipe, { downloads }: Paths): Promise<void> {
  const behavior = { behavior: 'allowAndName', downloadPath: downloads, eventsEnabled: true };
  await Promise.all([
    pipe.call('Browser.setDownloadBehavior', behavior, READY_TIMEOUT_MS),
    pipe.call('Target.createTarget', { url: 'about:blank' }, READY_TIMEOUT_MS),
  ]);
}

async function end(pipe: Pipe, jailed: Jailed, timeoutMs: number): Promise<void> {
  // its answer may be lost with the pipe; the exit is what counts
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
