/**
 * Uploads the downloads of a session's pages to core: each file when Chrome has completed it, the
 * last ones before the session ends. A file is removed from this machine after its upload. The
 * session's log has a warning for each file that is not kept.
 *   begun -> complete -> stored;  begun -> canceled;  complete -> refused (too large, too many)
 */
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { DOWNLOAD_MAX_BYTES } from '../../proto/common/limits.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { Chrome } from '../browser/launch.ts';
import { until } from '../common/abort.ts';
import { CHUNK_BYTES, uploadBlob } from '../common/blob-upload.ts';
import { AWAY_MS, retryCall } from '../common/core-calls.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import type { Lease } from '../leases/lease.ts';
import type { OpenComponent } from './session.ts';

/**
 * For one session. Ours: enough for an invoice run or a crawl, too little to fill a disk. `endMs`:
 * after its end its Chrome waits so long for all uploads together.
 */
const DOWNLOAD_LIMITS = { files: 1_000, bytes: 5 * 1024 ** 3, endMs: AWAY_MS };
/** For one file to core. Ours: 1 GiB over a link of 50 Mbit/s needs 172 s. */
const TRANSFER_TIMEOUT_MS = 300_000;
/** Ours: for downloads in progress when their session ends. */
const LAST_BYTES_MS = 10_000;
const NAME_SHOWN_CHARS = 100;

export type DownloadsOptions = {
  /** No file is sent after its stop. */
  runner: Pick<RunnerContext, 'clients' | 'log' | 'stopped'>;
  /** Core may accept files under a lost one: the runner was away for long. */
  lease: Pick<Lease, 'id' | 'call'>;
  /** Adds a warning to the session's log. */
  warn: (message: string) => void;
  limits?: typeof DOWNLOAD_LIMITS;
};

/** The part of a Chrome that is used. */
type Downloading = Pick<Chrome, 'pipe' | 'dir'>;
type Begun = { name: string; bytes: number };

export function downloads(options: DownloadsOptions): OpenComponent {
  return async (chrome) => {
    const session = new Downloads(chrome, options);
    const stop = chrome.pipe.onEvent(({ method, params }) => {
      if (method === 'Browser.downloadWillBegin') session.begin(params);
      else if (method === 'Browser.downloadProgress') session.progress(params);
    });
    return {
      async close() {
        await session.end();
        stop();
      },
    };
  };
}

class Downloads {
  readonly #chrome: Downloading;
  readonly #options: DownloadsOptions;
  readonly #limits: typeof DOWNLOAD_LIMITS;
  /** By Chrome's id. */
  readonly #begun = new Map<string, Begun>();
  #stored = { files: 0, bytes: 0 };
  #hasWarned = false;
  /** One at a time: the link to core is shared. */
  #storing: Promise<void> = Promise.resolve();
  #settled = Promise.withResolvers<void>();
  /** Aborts when the session has ended for so long that nothing more is sent. */
  readonly #over = new AbortController();

  constructor(chrome: Downloading, options: DownloadsOptions) {
    this.#chrome = chrome;
    this.#options = options;
    this.#limits = options.limits ?? DOWNLOAD_LIMITS;
  }

  begin({ guid, suggestedFilename }: Record<string, unknown>): void {
    this.#begun.set(String(guid), { name: String(suggestedFilename), bytes: 0 });
    if (this.#isFull(0)) this.#cancel(String(guid));
  }

  progress({ guid: id, state, receivedBytes, filePath }: Record<string, unknown>): void {
    const guid = String(id);
    const file = this.#begun.get(guid);
    if (file === undefined) return;
    file.bytes = Number(receivedBytes);
    if (state === 'inProgress') {
      if (file.bytes > DOWNLOAD_MAX_BYTES || this.#isFull(file.bytes)) this.#cancel(guid);
      return;
    }
    this.#begun.delete(guid);
    if (state === 'completed') this.#store(file, basename(String(filePath ?? guid)));
    else this.#options.warn(`the download of ${shown(file.name)} was cancelled`);
    if (this.#begun.size === 0) this.#settled.resolve();
  }

  /** Waits for downloads in progress, up to a limit, and for uploads. Never rejects. */
  async end(): Promise<void> {
    if (this.#begun.size > 0) {
      this.#settled = Promise.withResolvers();
      const { closed } = this.#chrome.pipe;
      const { stopped } = this.#options.runner;
      const over = AbortSignal.any([stopped, AbortSignal.timeout(LAST_BYTES_MS)]);
      const settled = Promise.race([this.#settled.promise, closed]);
      await until(settled, over).catch(() => undefined); // the others get a warning below
    }
    for (const { name } of this.#begun.values()) {
      this.#options.warn(`the download of ${shown(name)} had not ended with the session`);
    }
    this.#begun.clear();
    const late = new Fault('DEADLINE', 'its session ended too long ago.');
    const timer = setTimeout(() => this.#over.abort(late), this.#limits.endMs);
    await this.#storing;
    clearTimeout(timer);
  }

  #isFull(more: number): boolean {
    const { files, bytes } = this.#stored;
    return files >= this.#limits.files || bytes + more > this.#limits.bytes;
  }

  #cancel(guid: string): void {
    this.#refuse(this.#begun.get(guid)?.name ?? '');
    this.#begun.delete(guid);
    // rejects if the download or Chrome has ended
    cancel(this.#chrome, guid).catch(() => undefined);
  }

  #refuse(name: string): void {
    const { files, bytes } = this.#limits;
    const gib = (size: number) => `${Math.round((size / 1024 ** 3) * 10) / 10} GiB`;
    if (!this.#isFull(0)) {
      this.#options.warn(
        `${shown(name)} is not kept: a download has at most 1 GiB, all ${gib(bytes)}`,
      );
    } else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const most = `${files} files of ${gib(bytes)} together`;
      this.#options.warn(`downloads are not kept any more: a session has at most ${most}`);
    }
  }

  #store({ name, bytes }: Begun, stored: string): void {
    if (bytes > DOWNLOAD_MAX_BYTES || this.#isFull(bytes)) {
      this.#refuse(name);
      return;
    }
    this.#stored = { files: this.#stored.files + 1, bytes: this.#stored.bytes + bytes };
    const path = join(this.#chrome.dir, 'downloads', stored);
    this.#storing = this.#storing.then(async () => {
      try {
        await send(path, name, this.#options, this.#over.signal);
      } catch (error) {
        if (this.#options.runner.stopped.aborted) return;
        this.#options.runner.log.warn({ err: error }, 'a download was not stored');
        this.#options.warn(`${shown(name)} could not be kept: ${asFault(error).message}`);
      } finally {
        // if it fails, the file is removed with Chrome's directory
        await rm(path, { force: true }).catch(() => undefined);
      }
    });
  }
}

/** In all browser contexts: Chrome does not report the context of a download. */
async function cancel({ pipe }: Downloading, guid: string): Promise<void> {
  const { browserContextIds } = await pipe.call('Target.getBrowserContexts');
  const ids: unknown[] = [undefined, ...(browserContextIds as string[])];
  await Promise.allSettled(
    ids.map((browserContextId) => {
      return pipe.call('Browser.cancelDownload', { guid, browserContextId });
    }),
  );
}

async function send(
  path: string,
  filename: string,
  { runner, lease }: DownloadsOptions,
  over: AbortSignal,
): Promise<void> {
  const { clients, stopped } = runner;
  const { id: leaseId } = lease;
  const signal = AbortSignal.any([stopped, over, AbortSignal.timeout(AWAY_MS)]);
  const call = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  const content = () => plainContent(path);
  const { blobId } = await uploadBlob(clients, { kind: 'DOWNLOAD', leaseId, content }, call);
  await retryCall(() => clients.runners.addDownload({ leaseId, blobId, filename }, call), signal);
}

async function* plainContent(path: string): AsyncGenerator<Buffer> {
  yield* (await openPlain(path)).createReadStream({ highWaterMark: CHUNK_BYTES });
}

/**
 * Opens a regular file and nothing else: an exploited Chrome could put a link to a file of this
 * machine in its place, or a pipe without a writer.
 */
async function openPlain(path: string): Promise<FileHandle> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error('a download that is no file');
}

/** A name chosen by a page, shortened and without control characters. */
function shown(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters.
  return `"${name.slice(0, NAME_SHOWN_CHARS).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?')}"`;
}
