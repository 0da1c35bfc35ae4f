/**
 * Stores a blob: its bytes are sent to core, or past core to its bucket, in parts that are signed
 * one by one. The stream is read once. A part is sent again, newly signed, until the signal aborts
 * or the limit is reached: a bucket may be away for minutes.
 */
import { createHash } from 'node:crypto';
import { retry } from '../common/retry.ts';
import type {
  WriteBlobRequest,
  WriteBlobRequest_Header,
  WriteBlobResponse,
} from '../gen/tabern/v1/blobs.pb.ts';
import { Fault } from '../rpc/errors.ts';
import type { CallOptions } from '../rpc/local.ts';
import type { Clients } from '../rpc/services.ts';
import type { Semaphore } from '../sharing/semaphore.ts';
import { partsOf } from './parts.ts';

/** Of one request to the bucket. Ours: 5 MiB over a link of 1 Mbit/s. */
const REQUEST_MS = 60_000;
/** In ms, between two attempts. Ours. */
const PAUSE = { firstMs: 100, maxMs: 4_000 };
/** Ours: a core that has no bucket is not asked before each upload. */
const ASK_AGAIN_MS = 60_000;

export type BlobClient = Pick<
  Clients['blobs'],
  'writeBlob' | 'beginUpload' | 'signUpload' | 'commitUpload' | 'abortUpload'
>;

export type NewBlob = {
  header: WriteBlobRequest_Header;
  bytes: AsyncIterable<Uint8Array>;
};

type How = CallOptions & {
  /** In ms, of the pauses between attempts to send a part. */
  retryMs: number;
  /** Requests to the bucket at the same time, shared by owners. */
  slots?: { semaphore: Semaphore; owner: string } | undefined;
};

/** When a core without a bucket was asked last, by performance.now(). */
const askedAt = new WeakMap<object, number>();

/** Stores the bytes; throws their error, and then nothing is stored. */
export async function storeBlob(
  blobs: BlobClient,
  { header, bytes }: NewBlob,
  { retryMs, slots, ...call }: How,
): Promise<WriteBlobResponse> {
  const { upload } = await begin(blobs, header, call);
  if (upload === undefined) return await blobs.writeBlob(messages(header, bytes), call);
  const signal = call.signal ?? new AbortController().signal;
  const sender = new Sender(blobs, { upload, call, signal, retryMs, slots });
  try {
    return await sender.sendAll(bytes);
  } catch (error) {
    await sender.abort();
    throw error;
  }
}

async function begin(blobs: BlobClient, header: WriteBlobRequest_Header, call: CallOptions) {
  const asked = askedAt.get(blobs);
  const isRecent = asked !== undefined && performance.now() - asked < ASK_AGAIN_MS;
  if (isRecent) return { upload: undefined };
  const answer = await blobs.beginUpload({ header }, call).catch((error: unknown) => {
    // during an upgrade: an older core
    if (error instanceof Fault && error.reason === 'NOT_IMPLEMENTED') return { upload: undefined };
    throw error;
  });
  if (answer.upload === undefined) askedAt.set(blobs, performance.now());
  return answer;
}

async function* messages(
  header: WriteBlobRequest_Header,
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: header } };
  for await (const chunk of bytes) {
    const value = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    yield { part: { $case: 'chunk', value } };
  }
}

type Sending = Pick<How, 'retryMs' | 'slots'> & {
  upload: string;
  call: CallOptions;
  signal: AbortSignal;
};

/** One upload to the bucket. */
class Sender {
  readonly #blobs: BlobClient;
  readonly #how: Sending;
  #upload: string;

  constructor(blobs: BlobClient, how: Sending) {
    this.#blobs = blobs;
    this.#how = how;
    this.#upload = how.upload;
  }

  async sendAll(bytes: AsyncIterable<Uint8Array>): Promise<WriteBlobResponse> {
    const hash = createHash('sha256');
    const tags: string[] = [];
    let size = 0;
    let isWhole = false;
    for await (const { body, isLast } of partsOf(bytes)) {
      hash.update(body);
      size += body.length;
      isWhole = isLast && tags.length === 0;
      tags.push(await this.#again(() => this.#send(isWhole ? 0 : tags.length + 1, body)));
    }
    const commit = { size, sha256: hash.digest('hex'), tags: isWhole ? [] : tags };
    const { call } = this.#how;
    return await this.#again(() =>
      this.#blobs.commitUpload({ upload: this.#upload, ...commit }, call),
    );
  }

  /** Never rejects: what is left is removed by a sweep. */
  async abort(): Promise<void> {
    const { signal: _, ...call } = this.#how.call;
    await this.#blobs.abortUpload({ upload: this.#upload }, call).catch(() => undefined);
  }

  /** Returns the tag of the part. */
  async #send(number: number, body: Buffer): Promise<string> {
    const { call, signal, slots } = this.#how;
    using _ = await slots?.semaphore.acquire(signal, slots.owner);
    const sha256 = createHash('sha256').update(body).digest('hex');
    const wanted = { upload: this.#upload, number, size: body.length, sha256 };
    const { upload, url, headers } = await this.#blobs.signUpload(wanted, call);
    this.#upload = upload;
    const response = await fetch(url, {
      method: 'PUT',
      headers,
      body: body as Uint8Array<ArrayBuffer>,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
    }).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw notStored(cause);
    });
    await response.body?.cancel();
    if (!response.ok) throw notStored(new Error(`the bucket answered ${response.status}`));
    return response.headers.get('etag') ?? '';
  }

  #again<T>(attempt: () => Promise<T>): Promise<T> {
    const { retryMs: limitMs, signal } = this.#how;
    return retry(attempt, { ...PAUSE, limitMs, signal, isRetryable });
  }
}

/** Whether the same call may succeed later: while core or the bucket is away. */
function isRetryable(error: unknown): boolean {
  return error instanceof Fault && (error.row.retry === 'yes' || error.reason === 'DEADLINE');
}

function notStored(cause: unknown): Fault {
  const message = 'The storage of files is not reachable. Retry the request.';
  return new Fault('BLOBS_UNAVAILABLE', message, {}, cause);
}
