/**
 * Whether the bucket can be used, for /readyz: asked every 10 s, and every 2 s while it
 * cannot. An object names the installation that the prefix belongs to: two installations with one
 * prefix would remove each other's objects. It is read each time: two may have begun at once, and a
 * lost one is written again.
 *   unknown -> usable <-> unusable (with a sentence for the operator)
 */
import type { Log } from '../../../proto/common/log.ts';
import { periodically } from '../../common/periodically.ts';
import type { Bucket } from './bucket.ts';
import { isMissing, sentenceOf } from './errors.ts';

/** In milliseconds. Ours: at half a cent per thousand lists, less than two dollars a month. */
const USABLE_PERIOD_MS = 10_000;
const PERIOD_MS = 2_000;
/** Name of the object below the prefix. It is no id, so no sweep removes it. */
const OWNER = 'tabern-owner';

export type BucketHealth = AsyncDisposable & {
  /** Empty while the bucket can be used. Nothing is swept while there is one. */
  readonly problem: string;
};

type Options = {
  bucket: Bucket;
  /** Names this installation: 64 hex digits. */
  owner: string;
  log: Log;
};

/** Asks at once; a bucket that cannot be used is no error. */
export async function watchBucket({ log, bucket, owner }: Options): Promise<BucketHealth> {
  let problem = '';
  let sinceMs = 0;
  const look = async (): Promise<void> => {
    const found = await claimBucket(bucket, owner);
    sinceMs = 0;
    if (found === problem) return;
    problem = found;
    const { endpoint, bucket: name } = bucket.place;
    if (problem === '') log.info({ endpoint, bucket: name }, 'the bucket can be used again');
    else log.error({ endpoint, bucket: name, problem }, 'the bucket of TABERN_BLOBS is not usable');
  };
  await look();
  const run = async (): Promise<void> => {
    sinceMs += PERIOD_MS;
    if (problem !== '' || sinceMs >= USABLE_PERIOD_MS) await look();
  };
  const checks = periodically(PERIOD_MS, run, { log, failure: 'checking the bucket failed' });
  return {
    get problem() {
      return problem;
    },
    [Symbol.asyncDispose]: () => checks[Symbol.asyncDispose](),
  };
}

/** Makes a new prefix that of the owner. Empty when it is. */
export async function claimBucket(bucket: Bucket, owner: string): Promise<string> {
  try {
    await bucket.ping();
    const found = await ownerOf(bucket);
    if (found === undefined) await bucket.put(ownerKey(bucket), Buffer.from(owner));
    return ownerProblem(bucket, found ?? (await ownerOf(bucket)), owner);
  } catch (error) {
    return sentenceOf(error, bucket.place);
  }
}

/** For `tabern doctor`: changes nothing. */
export async function inspectBucket(bucket: Bucket, owner: string | undefined): Promise<string> {
  try {
    await bucket.ping();
    const found = await ownerOf(bucket);
    return owner === undefined ? '' : ownerProblem(bucket, found ?? owner, owner);
  } catch (error) {
    return sentenceOf(error, bucket.place);
  }
}

function ownerProblem({ place }: Bucket, found: string | undefined, owner: string): string {
  if (found === owner) return '';
  return (
    `TABERN_BLOBS, s3://${place.bucket}/${place.prefix}, belongs to another installation, with ` +
    'another master key: set another prefix.'
  );
}

/** Undefined when the prefix is new. */
async function ownerOf(bucket: Bucket): Promise<string | undefined> {
  try {
    return await bucket.text(ownerKey(bucket));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function ownerKey({ place }: Bucket): string {
  return `${place.prefix}${OWNER}`;
}
