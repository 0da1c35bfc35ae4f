/**
 * The context of one session: loaded into its own user-data directory before Chrome starts, saved
 * after Chrome has ended, and removed from this machine in any case.
 *
 * The saved content is replaced only when core has received all of the new content: a save that
 * fails, or a runner that dies, changes nothing. A failed save is a warning and never fails the
 * session.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { PROFILE_LIMITS } from '../../proto/archives/context-entries.ts';
import { sealProfile } from '../../proto/archives/context-writer.ts';
import type { ContextWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { asFault } from '../../proto/rpc/errors.ts';
import type { Chrome } from '../browser/launch.ts';
import { packProfile, unpackProfile } from '../browser/profile/profile.ts';
import {
  readState,
  restoreState,
  takeState,
  writeState,
} from '../browser/profile/session-state.ts';
import { CHUNK_BYTES, uploadBlob } from '../common/blob-upload.ts';
import { AWAY_MS, retryCall } from '../common/core-calls.ts';
import { removeTree } from '../common/remove.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import { step } from '../common/steps.ts';
import type { Lease } from '../leases/lease.ts';

/** For a transfer. Ours: 512 MiB over a link of 50 Mbit/s need 86 s. */
const TRANSFER_TIMEOUT_MS = 120_000;
/** Ours: Browser.close takes 40 to 100 ms; on a loaded machine, tens of seconds. */
const CLOSE_TIMEOUT_MS = 30_000;

export type Context = {
  profileDir: string;
  persist: boolean;
  /** Called before the first client connects. */
  restore(chrome: Chrome): Promise<void>;
  /** Closes Chrome and saves its profile; warns when that fails. Never rejects. */
  save(chrome: Chrome): Promise<void>;
  /** Warns in the session's log that the content is unchanged. */
  notSaved(why: string): void;
  /** Removes it from this machine. Called after Chrome has ended. */
  [Symbol.asyncDispose](): Promise<void>;
};

type ContextDeps = {
  /** Nothing is saved after its stop. */
  runner: Pick<RunnerContext, 'clients' | 'runDir' | 'log' | 'stopped'>;
  /** Core may accept a save under a lost one: the runner was away for long. */
  lease: Pick<Lease, 'id' | 'call'>;
  /** Adds a warning to the session's log. */
  warn: (message: string) => void;
};

/** Rejects if the content cannot be loaded, or with the signal's reason. */
export async function openContext(
  work: ContextWork,
  deps: ContextDeps,
  signal: AbortSignal,
): Promise<Context> {
  const { log, runDir } = deps.runner;
  const dir = join(runDir, `context-${deps.lease.id}`);
  const profileDir = join(dir, 'profile');
  await mkdir(dir, { mode: 0o700 });
  try {
    await step('context load', () => load(work, { ...deps, dir, profileDir }, signal));
    const state = await takeState(profileDir);
    const notSaved = (why: string): void =>
      deps.warn(`the context was not saved: ${why}; its content is what it was`);
    return {
      notSaved,
      profileDir,
      persist: work.persist,
      async restore({ pipe }) {
        if (state === undefined) return;
        for (const problem of await restoreState(pipe, state)) deps.warn(problem);
      },
      async save(chrome) {
        try {
          await step('context save', () => save(work, { ...deps, dir, profileDir }, chrome));
        } catch (error) {
          log.warn({ contextId: work.contextId, err: error }, 'a context was not saved');
          notSaved(reasonOf(error));
        }
      },
      [Symbol.asyncDispose]: () => removeTree(dir),
    };
  } catch (error) {
    await removeTree(dir);
    throw error;
  } finally {
    work.keys.fill(0);
  }
}

type Place = ContextDeps & { dir: string; profileDir: string };

async function load(
  { blobId, keys }: ContextWork,
  { runner, lease, dir, profileDir }: Place,
  signal: AbortSignal,
): Promise<void> {
  if (blobId === undefined) {
    await mkdir(profileDir, { mode: 0o700 });
    return;
  }
  const path = join(dir, 'loaded');
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  const parts = runner.clients.blobs.readBlob({ blobId }, options);
  await pipeline(bytesOf(parts), createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
  await unpackProfile({ path, keys }, profileDir, { signal });
  await rm(path);
}

async function* bytesOf(parts: AsyncIterable<{ chunk: Uint8Array }>): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const { chunk } of parts) {
    bytes += chunk.length;
    if (bytes > PROFILE_LIMITS.packedMaxBytes) throw new Error('a context of more than 512 MiB');
    yield chunk;
  }
}

class NotSaved extends Error {}

async function save({ publicKey }: ContextWork, place: Place, chrome: Chrome): Promise<void> {
  const { runner, lease, dir, profileDir, warn } = place;
  const { clients } = runner;
  const { id: leaseId } = lease;
  const state = await readState(chrome.pipe);
  await chrome.close(CLOSE_TIMEOUT_MS);
  const { code } = await chrome.exited;
  // the profile of a killed Chrome lacks its last cookies, or half of them
  if (code !== 0) throw new NotSaved('the browser did not end by itself');
  await writeState(profileDir, state);
  const signal = AbortSignal.any([runner.stopped, AbortSignal.timeout(AWAY_MS)]);
  const path = join(dir, 'saved');
  await sealProfile(packProfile(profileDir), publicKey, path, { signal });
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  const content = () => createReadStream(path, { highWaterMark: CHUNK_BYTES });
  const { blobId } = await uploadBlob(clients, { kind: 'CONTEXT', leaseId, content }, options);
  const saved = await retryCall(
    () => clients.runners.saveContext({ leaseId, blobId }, options),
    signal,
  );
  if (saved.replaced && !saved.saved) {
    const since = 'another session has saved it since this one was given up as lost';
    warn(`the context was not saved: ${since}; the content is that of the other`);
    return;
  }
  if (!saved.saved) throw new NotSaved('it was deleted meanwhile');
  if (saved.replaced) {
    warn('another session saved this context meanwhile; this save has replaced its content');
  }
}

/** For the tenant: without paths and addresses of this machine. */
function reasonOf(error: unknown): string {
  const { message } = error instanceof NotSaved ? error : asFault(error);
  return message.replace(/\.$/, '');
}
