/**
 * The requests to a bucket: signed by aws4fetch, sent by fetch. Signatures are headers, as no URL
 * may contain one, and as only then every server verifies length and hash of the bytes.
 */
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { AwsV4Signer } from 'aws4fetch';
import type { SignedRequest } from '../blobs.ts';
import { S3Error } from './errors.ts';
import { type S3Place, urlIn } from './place.ts';
import { elementsOf, encoded, textOf } from './xml.ts';

/** In milliseconds, of one request. Ours. */
const TIMES = {
  /** 8 MiB over a link of 2 Mbit/s, and the answer; of an object until its headers. */
  requestMs: 60_000,
  /** Of those that find out whether the bucket can be used. */
  pingMs: 5_000,
  /** A server may put the parts of an upload together only now. */
  completeMs: 300_000,
  /** Between two chunks of an object. */
  idleMs: 30_000,
};
/** Of an answer in XML: 1,000 keys have half a MiB. Ours. */
const XML_MAX_BYTES = 4 << 20;
/** Objects of one list. Source: ListObjectsV2. */
export const LIST_MAX = 1_000;
/** In characters. */
const CODE_MAX = 64;
/** The status of a range. */
const PARTIAL = 206;
const EMPTY_SHA256 = createHash('sha256').digest('hex');

/** Ages by the server's clock, in milliseconds; 0 for a time that cannot be read. */
export type Listed = { key: string; size: number; ageMs: number };
export type OpenUpload = { key: string; uploadId: string; ageMs: number };
type Page<T> = { items: T[]; isLast: boolean };

type Wanted = {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Buffer;
  signal?: AbortSignal | undefined;
  timeoutMs?: number;
};

export type Bucket = ReturnType<typeof openBucket>;

/** `wall`: the machine's clock, for signatures. `times`: shorter in tests. */
export function openBucket(
  place: S3Place,
  { wall = Date.now, times = TIMES }: { wall?: () => number; times?: typeof TIMES } = {},
) {
  const closed = new AbortController();
  setMaxListeners(0, closed.signal);
  const { region, accessKeyId, secretAccessKey, prefix } = place;
  /** Content-length is signed too. */
  const scope = { region, accessKeyId, secretAccessKey, service: 's3', allHeaders: true };

  async function sign(
    { method, key, query }: Pick<Wanted, 'method' | 'key' | 'query'>,
    headers: Record<string, string>,
  ): Promise<SignedRequest> {
    const datetime = new Date(wall()).toISOString().replace(/[:-]|\.\d{3}/g, '');
    const signer = new AwsV4Signer({
      url: urlIn(place, key, query).href,
      method,
      headers,
      datetime,
      ...scope,
    });
    const { url, headers: signed } = await signer.sign();
    return { method, url: url.href, headers: Object.fromEntries(signed) };
  }

  /** Sends it, and reads the answer in time; throws S3Error for one that is no success. */
  async function send<T>(wanted: Wanted, read: (response: Response) => T | Promise<T>): Promise<T> {
    const { method, body, headers = {}, timeoutMs = times.requestMs, signal } = wanted;
    const hash = body ? createHash('sha256').update(body).digest('hex') : EMPTY_SHA256;
    const signed = await sign(wanted, { ...headers, 'x-amz-content-sha256': hash });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException('late', 'TimeoutError')), timeoutMs);
    try {
      const response = await fetch(signed.url, {
        method,
        headers: signed.headers,
        redirect: 'manual',
        signal: AbortSignal.any([late.signal, closed.signal, ...(signal ? [signal] : [])]),
        ...(body && { body: new Uint8Array(body) }),
      });
      if (!response.ok) throw await errorOf(response, method);
      return await read(response);
    } finally {
      clearTimeout(timer);
    }
  }

  const sendForText = (wanted: Wanted) =>
    send(wanted, async (response) => ({ response, xml: await limitedText(response) }));
  const done = async (wanted: Wanted): Promise<void> => void (await sendForText(wanted));

  return {
    place,
    put: (key: string, body: Buffer, signal?: AbortSignal) =>
      done({ method: 'PUT', key, body, signal }),
    /** Returns the part's tag. */
    async putPart(key: string, body: Buffer, query: Record<string, string>): Promise<string> {
      const { response } = await sendForText({ method: 'PUT', key, query, body });
      return response.headers.get('etag') ?? '';
    },
    times,
    /** The bytes from `start` to `end` (exclusive), all without a range; not read yet. */
    get(key: string, range?: { start: number; end: number }, signal?: AbortSignal) {
      const headers = range && { range: `bytes=${range.start}-${range.end - 1}` };
      const wanted = { method: 'GET', key, signal, ...(headers && { headers }) } as const;
      return send(wanted, async (response) => {
        if (range === undefined || response.status === PARTIAL) return response;
        await response.body?.cancel();
        throw new S3Error({ status: response.status, code: 'RangeIgnored' });
      });
    },
    /** A small object. Throws for one of more than 4 MiB. */
    async text(key: string): Promise<string> {
      return (await sendForText({ method: 'GET', key, timeoutMs: times.pingMs })).xml;
    },
    /** In bytes. */
    sizeOf: (key: string): Promise<number> =>
      send({ method: 'HEAD', key }, ({ headers }) => Number(headers.get('content-length'))),
    remove: (key: string) => done({ method: 'DELETE', key }),
    /** Throws when the bucket cannot be used. */
    ping: () =>
      done({
        method: 'GET',
        query: { 'list-type': '2', prefix, 'max-keys': '1' },
        timeoutMs: times.pingMs,
      }),
    /** Objects of the prefix in order of their keys, from behind `after`. */
    async list(after: string): Promise<Page<Listed>> {
      const range = { 'start-after': after, 'max-keys': String(LIST_MAX) };
      const query = { 'list-type': '2', prefix, ...range };
      const { response, xml } = await sendForText({ method: 'GET', query });
      const items = elementsOf(xml, 'Contents').map((one) => ({
        key: textOf(one, 'Key'),
        size: Number(textOf(one, 'Size')),
        ageMs: ageOf(response, textOf(one, 'LastModified')),
      }));
      return pageOf(items, { xml, isRepeated: items.at(-1)?.key === after });
    },
    /** Multipart uploads that were neither completed nor aborted. */
    async listUploads(after: { key: string; uploadId: string }): Promise<Page<OpenUpload>> {
      const { key, uploadId } = after;
      const marker = key === '' ? {} : { 'key-marker': key, 'upload-id-marker': uploadId };
      const query = { uploads: '', prefix, 'max-uploads': String(LIST_MAX), ...marker };
      const { response, xml } = await sendForText({ method: 'GET', query });
      const items = elementsOf(xml, 'Upload').map((one) => ({
        key: textOf(one, 'Key'),
        uploadId: textOf(one, 'UploadId'),
        ageMs: ageOf(response, textOf(one, 'Initiated')),
      }));
      const last = items.at(-1);
      const isRepeated = last?.key === key && last.uploadId === uploadId;
      return pageOf(items, { xml, isRepeated });
    },
    async beginUpload(key: string): Promise<string> {
      const query = { uploads: '' };
      return textOf((await sendForText({ method: 'POST', key, query })).xml, 'UploadId');
    },
    async completeUpload(key: string, uploadId: string, tags: readonly string[]): Promise<void> {
      const parts = tags.map((tag, index) => {
        return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${encoded(tag)}</ETag></Part>`;
      });
      const xml = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
      const body = Buffer.from(xml);
      const wanted = { method: 'POST', key, query: { uploadId }, body } as const;
      const answer = await sendForText({ ...wanted, timeoutMs: times.completeMs });
      // S3 sends the status before it has the outcome
      const code = textOf(answer.xml, 'Code');
      if (code !== '') throw new S3Error({ status: 200, code });
    },
    abortUpload: (key: string, uploadId: string) =>
      done({ method: 'DELETE', key, query: { uploadId } }),
    /** A PUT of exactly these bytes, for whoever has them; valid for 15 minutes. */
    signPut(key: string, { size, sha256, query = {} }: SignedBytes): Promise<SignedRequest> {
      const headers = { 'content-length': String(size), 'x-amz-content-sha256': sha256 };
      return sign({ method: 'PUT', key, query }, headers);
    },
    /** Creates the bucket. For tests. */
    create: () => done({ method: 'PUT' }),
    [Symbol.dispose]: () => closed.abort(new DOMException('closed', 'AbortError')),
  };
}

type SignedBytes = { size: number; sha256: string; query?: Record<string, string> };

/** Throws for a page that is the one before: the list would have no end. */
function pageOf<T>(items: T[], { xml, isRepeated }: { xml: string; isRepeated: boolean }): Page<T> {
  if (isRepeated) throw new S3Error({ status: 200, code: 'SamePageAgain' });
  return { items, isLast: textOf(xml, 'IsTruncated') !== 'true' };
}

/** A server without a clock is compared with this machine's: both are close, or it refuses. */
function ageOf(response: Response, time: string): number {
  const serverAt = Date.parse(response.headers.get('date') ?? '') || Date.now();
  return serverAt - Date.parse(time) || 0;
}

/** A 404 without a code is an object's only where there is no body: a proxy has others. */
async function errorOf(response: Response, method: Wanted['method']): Promise<S3Error> {
  const { status, headers } = response;
  const xml = await limitedText(response).catch(() => '');
  const plain = status === 404 && method === 'HEAD' ? 'NotFound' : 'Error';
  const given = textOf(xml, 'Code').replace(/\W/g, '').slice(0, CODE_MAX);
  const code = given || (status >= 300 && status < 400 ? 'PermanentRedirect' : plain);
  const region = textOf(xml, 'Region') || (headers.get('x-amz-bucket-region') ?? '');
  return new S3Error({ status, code, region: /^[\w-]{1,64}$/.test(region) ? region : '' });
}

async function limitedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > XML_MAX_BYTES) {
      throw new S3Error({ status: response.status, code: 'AnswerTooLong' });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
