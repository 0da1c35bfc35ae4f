/**
 * An extension that a Chrome is started with. Chrome loads it some time after it is ready and
 * reports no failure: Chrome is polled until the extension is listed with its service worker.
 * Clients connect only then.
 */
import { constants } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Pipe } from './cdp/pipe.ts';

export type LoadedExtension = {
  /** Its id in this service; Chrome derives its own from the path. */
  id: string;
  /** Unpacked, on this machine. */
  dir: string;
};

/** Ours: it takes about 100 ms; on a loaded machine tens of seconds. */
const LOAD_TIMEOUT_MS = 45_000;
const PAUSE_MS = 20;

type Known = { id: string; enabled?: boolean; path?: string };
type Target = { type: string; url: string };

/** The path where Chrome finds it. */
export function extensionPlace({ id }: LoadedExtension): string {
  return `/extensions/${id}`;
}

/**
 * A copy for this Chrome, in its directory: Chrome writes the indexed rules of a content blocker
 * beside its manifest, and does not load the extension where it cannot.
 */
export async function ownExtension(
  { id, dir }: LoadedExtension,
  chromeDir: string,
): Promise<LoadedExtension> {
  const own = join(chromeDir, `extension-${id}`);
  await cp(dir, own, { recursive: true, mode: constants.COPYFILE_FICLONE });
  return { id, dir: own };
}

/** Throws UnsupportedSessionError when Chrome does not load it. */
export async function extensionLoaded(pipe: Pipe, extension: LoadedExtension): Promise<void> {
  const { dir } = extension;
  const place = extensionPlace(extension);
  const worker = await hasWorker(dir);
  const until = performance.now() + LOAD_TIMEOUT_MS;
  while (performance.now() < until) {
    const { extensions } = (await pipe.call('Extensions.getExtensions')) as { extensions: Known[] };
    const isOwn = ({ path = '' }: Known) => path === place || path === dir;
    const loaded = extensions.find((one) => isOwn(one) && one.enabled !== false);
    if (loaded && (!worker || (await isWorking(pipe, loaded.id)))) return;
    await sleep(PAUSE_MS);
  }
  throw new UnsupportedSessionError('the browser did not load the extension: look at its manifest');
}

async function isWorking(pipe: Pipe, id: string): Promise<boolean> {
  const { targetInfos } = (await pipe.call('Target.getTargets')) as { targetInfos: Target[] };
  const isOwn = ({ type, url }: Target) =>
    type === 'service_worker' && url.startsWith(`chrome-extension://${id}/`);
  return targetInfos.some(isOwn);
}

async function hasWorker(dir: string): Promise<boolean> {
  const text = await readFile(join(dir, 'manifest.json'), 'utf8');
  return /"service_worker"\s*:/.test(text);
}
