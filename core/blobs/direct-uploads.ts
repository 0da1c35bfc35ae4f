/**
 * Uploads whose bytes do not go through core: core checks rights, quota and limits, signs each
 * request for a caller that has the bytes, and writes the row when the bucket has them all.
 *   begun --sign--> in progress --commit--> stored;  begun, in progress --abort, or time--> removed
 * An upload is named by a sealed text, so that every core can continue it. What a core counts of it
 * is in memory: a core that did not begin it counts from its first call.
 */
import { LRUCache } from 'lru-cache';
import type { BlobServiceService } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import { asFault, Fault, invalidField } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import { PART_BYTES } from '../../proto/uploads/parts.ts';
import type { Service } from '../api/interceptors.ts';
import { newId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { DirectUploads } from '../files/blobs.ts';
import type { Arrival } from '../projects/quotas.ts';
import type { BlobKind } from '../store/types/files.ts';
import {
  type BlobCaller,
  type BlobOptions,
  type Header,
  MAX_BYTES,
  type Owner,
  ownerOf,
  receiptOf,
  replacedBytes,
} from './blobs.ts';

/** Ours: less than the hour after which an object without a row is swept. */
const UPLOAD_LIFE_MS = 1_800_000;
/** Ours: an upload without a call is forgotten; its caller may continue it. */
const IDLE_MS = 120_000;
/** Uploads at the same time, and those of one project at most. Ours. */
const UPLOADS_MAX = 2_048;
const UPLOADS_OF_PROJECT_MAX = 512;
const SHA256 = /^[0-9a-f]{64}$/;
const PLACE = 'an upload to the bucket';
/** Ours: those of servers have some 40. */
const TAG_MAX_CHARS = 256;

type Direct = Pick<
  typeof BlobServiceService,
  'beginUpload' | 'signUpload' | 'commitUpload' | 'abortUpload'
>;

/** The content of the sealed text. */
type Token = Owner &
  Pick<Header, 'leaseId' | 'reported'> & {
    id: string;
    /** Of the caller that began it. */
    by: BlobCaller['who']['kind'];
    /** Of a multipart upload. */
    uploadId?: string;
    until: number;
  };

/** An upload in progress, as this core counts it. */
type Counted = {
  arrival: Arrival;
  /** In bytes, by number. */
  sizes: Map<number, number>;
  /** Of the multipart upload that this core has begun: one, whatever texts its caller sends. */
  uploadId?: Promise<string> | undefined;
  end(): void;
};

export function directUploads(
  options: BlobOptions & { sealer: Sealer },
): Service<Direct, BlobCaller> {
  const { store, files, sealer, now } = options;
  const { direct } = files;
  const counted = countUploads(options);

  const seal = (token: Token): string =>
    sealer.seal(Buffer.from(JSON.stringify(token)), PLACE).toString('base64url');

  /** The upload of the text, if the caller may continue it. */
  function open(text: string, { who }: BlobCaller): Token & { direct: DirectUploads } {
    const token = opened(sealer, text);
    const isOther = who.kind === 'project' && who.projectId !== token?.projectId;
    if (token === undefined || token.by !== who.kind || isOther || direct === undefined) {
      throw invalidField('upload', 'must be one that BeginUpload returned.');
    }
    if (token.until < now()) throw new Fault('URL_EXPIRED', 'The upload has expired. Begin again.');
    return { ...token, direct };
  }

  return {
    async beginUpload({ header }, { who }) {
      if (direct === undefined) return { upload: undefined };
      if (header === undefined) throw invalidField('header', 'is required.');
      const owner = await ownerOf(options, header satisfies Header, who);
      if (who.kind !== 'runner') options.disk.checkRoom();
      const { leaseId, reported } = header;
      const ends = { by: who.kind, until: now() + UPLOAD_LIFE_MS };
      const token: Token = { ...owner, ...ends, id: newId(), leaseId, reported };
      await counted.of(token);
      return { upload: seal(token) };
    },

    async signUpload({ upload, number, size, sha256 }, caller) {
      const { direct: bucket, ...token } = open(upload, caller);
      const { id, kind } = token;
      checkPart({ size, sha256 });
      // its bytes must stay what its row says
      if ((await store.getBlob(id)) !== undefined) throw invalidField('upload', 'is committed.');
      const one = await counted.of(token);
      const { arrival, sizes } = one;
      const before = sizes.get(number) ?? 0;
      const sum = [...sizes.values()].reduce((all, one) => all + one, size - before);
      if (sum > MAX_BYTES[kind]) {
        const maxBytes = MAX_BYTES[kind];
        throw new Fault('BODY_TOO_LARGE', `The upload exceeds ${maxBytes} bytes.`, { maxBytes });
      }
      if (number > partsMax(kind)) throw invalidField('number', 'is too large.');
      arrival.add(size - before);
      sizes.set(number, size);
      if (number > 0) token.uploadId ??= await begunOnce(one, () => bucket.begin(id));
      const { uploadId } = token;
      const { url, headers } = await bucket.sign({ id, uploadId, number }, { size, sha256 });
      return { upload: seal(token), url, headers };
    },

    async commitUpload({ upload, size, sha256, tags }, caller) {
      const { direct: bucket, ...token } = open(upload, caller);
      const { id, projectId, kind } = token;
      if (!SHA256.test(sha256)) throw invalidField('sha256', 'must be 64 hex digits.');
      if (tags.length > partsMax(kind) || tags.some((tag) => tag.length > TAG_MAX_CHARS)) {
        throw invalidField('tags', 'must be those of the parts.');
      }
      const blob = { id, projectId, kind, size, sha256 };
      const receipt = receiptOf(options, token, blob);
      const known = await store.getBlob(id);
      if (known !== undefined) {
        return { blobId: id, size: known.size, sha256: known.sha256, receipt };
      }
      const { arrival } = await counted.of(token);
      const stored = await bucket.complete(token, tags);
      try {
        if (stored !== size) throw invalidField('size', 'must be the size of all parts.');
        if (receipt === undefined) await arrival.store({ ...blob, createdAt: now() });
      } catch (error) {
        // The row may exist when the outcome is unknown: its object stays.
        const { reason } = asFault(error);
        if (reason === 'QUOTA_EXCEEDED' || reason === 'INVALID_FIELD') await files.remove(id);
        throw error;
      } finally {
        counted.end(id);
      }
      return { blobId: id, size, sha256, receipt };
    },

    async abortUpload({ upload }, caller) {
      const { direct: bucket, ...token } = open(upload, caller);
      counted.end(token.id);
      if ((await store.getBlob(token.id)) === undefined) await bucket.abort(token);
      return {};
    },
  };
}

/** Shares of projects, quotas, and one upload at a time to the contexts of a project. */
function countUploads({ store, quotas, uploads }: BlobOptions) {
  const shares = openShares(UPLOADS_MAX, UPLOADS_OF_PROJECT_MAX);
  const known = new LRUCache<string, Counted>({
    max: UPLOADS_MAX,
    ttl: IDLE_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
    dispose: ({ end }) => end(),
  });

  async function begin({ id, projectId, kind, contextId, by }: Token): Promise<Counted> {
    if (!shares.acquire(projectId, 1)) {
      const limit = shares.heldBy(projectId);
      const message = `Max concurrent uploads (${limit}) of the project reached.`;
      throw new Fault('CONCURRENCY_LIMIT', message, { limit, current: limit });
    }
    try {
      const turn = by === 'gateway' ? uploads.begin(projectId) : undefined;
      const replaced = await replacedBytes(store, { projectId, contextId });
      const arrival = await quotas.arrive(projectId, kind, replaced);
      const end = () => {
        arrival[Symbol.dispose]();
        turn?.[Symbol.dispose]();
        shares.release(projectId, 1);
      };
      const one: Counted = { arrival, sizes: new Map(), end };
      known.set(id, one);
      return one;
    } catch (error) {
      shares.release(projectId, 1);
      throw error;
    }
  }

  return {
    of: async (token: Token): Promise<Counted> => known.get(token.id) ?? (await begin(token)),
    end: (id: string): void => void known.delete(id),
  };
}

async function begunOnce(one: Counted, begin: () => Promise<string>): Promise<string> {
  one.uploadId ??= begin();
  try {
    return await one.uploadId;
  } catch (error) {
    one.uploadId = undefined;
    throw error;
  }
}

function partsMax(kind: BlobKind): number {
  return Math.ceil(MAX_BYTES[kind] / PART_BYTES);
}

function checkPart({ size, sha256 }: { size: number; sha256: string }): void {
  if (!Number.isInteger(size) || size < 0 || size > PART_BYTES) {
    throw invalidField('size', `must be a whole number from 0 to ${PART_BYTES}.`);
  }
  if (!SHA256.test(sha256)) throw invalidField('sha256', 'must be 64 hex digits.');
}

/** Undefined for a text that this installation did not make. */
function opened(sealer: Sealer, text: string): Token | undefined {
  try {
    return JSON.parse(sealer.open(Buffer.from(text, 'base64url'), PLACE).toString());
  } catch {
    return undefined; // a damaged text and one of another installation are the same to its caller
  }
}
