/**
 * Launches one Chrome: its directory, its jail, its egress, its pipe.
 *   starting -> ready (its default page exists) -> gone -> directory removed, `exited` settles
 * However it ends - close(), a crash, a hang, the runner's death - no process is left; after a
 * killed runner, the next runner's sweep removes the directory.
 */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { Log } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import { END_REASONS } from '../../proto/sessions/end-reasons.ts';
import { keepTail } from '../common/flow.ts';
import { removeTree } from '../common/remove.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Egress } from '../jail/egress/egress-proxy.ts';
import { LISTENER_PORT, openListener, receiveListener } from '../jail/egress/listener.ts';
import type { Exit, Jailed } from '../jail/jail.ts';
import { openPipe, type Pipe } from './cdp/pipe.ts';
import { writeCertificates } from './certificate-database.ts';
import { type ContextProxies, openContextProxies } from './context-proxies.ts';
import { extensionLoaded, ownExtension } from './extension.ts';
import { chromeSpec, DIRS, type JailOptions, type Paths } from './jail.ts';
import { checkPolicies, writePolicies } from './policies.ts';

/** Ours: a cold start on a busy machine took 3 s. */
const READY_TIMEOUT_MS = 30_000;
/** Ours: Browser.close takes 40 to 100 ms, to write its cookies. */
const CLOSE_TIMEOUT_MS = 2_000;
/** Ours: a healthy Chrome may need six of these to respond on a loaded machine. */
const BEAT_MS = 5_000;
const MISSES_MAX = 6;
/** The end of its stderr, for crash reports. */
const STDERR_MAX_BYTES = 20_000;

export type LaunchOptions = JailOptions & {
  /** The parent of Chrome's directory. */
  runDir: string;
  /** Its network access; closed with it. */
  egress: Egress;
  log: Log;
  /** A user-data directory of the caller, which is kept; otherwise a new one, which is removed. */
  profileDir?: string;
  /** Of authorities that it trusts, in DER. */
  caCertificates?: readonly Uint8Array[] | undefined;
};

export type Chrome = {
  id: string;
  /** On this machine; contains downloads/ and uploads/. */
  dir: string;
  /** The same two as Chrome sees them. */
  paths: Paths;
  pipe: Pipe;
  /** Its network access. */
  egress: Pick<Egress, 'steer' | 'bytes' | 'errors' | 'deniedHosts' | 'onRefusal'>;
  /** Of its browser contexts. */
  proxies: ContextProxies;
  /** Settles when no process and no directory is left; never rejects. */
  exited: Promise<Exit>;
  /** The exceeded limit that ended it, once its pipe is closed. */
  exitReason(): string | undefined;
  /** Used by all of its processes a few seconds ago; undefined without a limit of its memory. */
  memoryBytes(): number | undefined;
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
  const { browserLost } = END_REASONS;
  return why === undefined ? browserLost : `${browserLost}: ${why}`;
}

/** Throws when Chrome does not start; nothing is left of it then. */
export async function launchChrome(options: LaunchOptions): Promise<Chrome> {
  const { runDir, egress, profileDir } = options;
  const id = randomUUID();
  const dir = join(runDir, `chrome-${id}`);
  try {
    await Promise.all(DIRS.map((name) => mkdir(join(dir, name), { recursive: true, mode: 0o700 })));
    checkPolicies(options.policies, options.jail);
    await writePolicies(options.policies, dir);
    await writeCertificates(options.caCertificates ?? [], join(dir, 'home'));
    const own = options.extensions?.map((extension) => ownExtension(extension, dir));
    const extensions = await Promise.all(own ?? []);
    const place = { ...options, id, dir, extensions };
    return await launchIn({ ...place, profileDir: profileDir ?? join(dir, 'profile') });
  } catch (error) {
    egress.close();
    await removeTree(dir);
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
  const stderr = keepTail(must(child.stderr, 'stderr'), STDERR_MAX_BYTES);
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
    await removeTree(dir).catch((error: unknown) => {
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
    for (const extension of place.extensions ?? []) await extensionLoaded(pipe, extension);
  } catch (error) {
    jailed.kill();
    await exited;
    if (error instanceof UnsupportedSessionError) throw error;
    const said = stderr().trim().slice(-1000) || 'nothing';
    throw new Error(`Chrome did not start: ${String(error)}; it said: ${said}`, { cause: error });
  }
  const stopWatching = detectHang(pipe, () => {
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
    egress,
    proxies,
    exited,
    exitReason: why,
    memoryBytes: () => jailed.memoryBytes?.(),
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

/**
 * Calls `onHang` once, after six timeouts in a row. A Chrome that sends bytes does not hang: its
 * response may be queued behind a message of 128 MiB, which takes that long on a busy machine
 * (seen). Nor does one with a page in an endless loop: the browser process still responds.
 */
export function detectHang(
  pipe: Pick<Pipe, 'call' | 'isPaused' | 'bytesReceived'>,
  onHang: () => void,
  beatMs = BEAT_MS,
): () => void {
  let misses = 0;
  const timer = setInterval(() => {
    const before = pipe.bytesReceived;
    pipe.call('Browser.getVersion', {}, beatMs).then(
      () => {
        misses = 0;
      },
      () => {
        if (pipe.isPaused) return; // its response waits behind a client that does not read
        misses = pipe.bytesReceived > before ? 0 : misses + 1;
        if (misses !== MISSES_MAX) return;
        clearInterval(timer);
        onHang();
      },
    );
  }, beatMs);
  return () => clearInterval(timer);
}
