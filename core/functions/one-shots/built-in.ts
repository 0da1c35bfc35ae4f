/**
 * Publishes the service's own function at its first use: the bundle of this release becomes a
 * version, whose file runners fetch as that of any function. A release with another bundle
 * publishes a new version; invocations of the old one end with theirs.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BUNDLE_MAX_BYTES } from '../../../proto/common/limits.ts';
import { newId } from '../../common/ids.ts';
import type { Blobs } from '../../files/blobs.ts';
import type { Store } from '../../store/types.ts';

const BUNDLE = new URL('./gen/bundle.mjs', import.meta.url);

type BuiltInDeps = { store: Store; files: Blobs; now: () => number };

/** Returns the version; publishes it once, and again after a failure. */
export function builtIn(deps: BuiltInDeps): () => Promise<string> {
  let published: Promise<string> | undefined;
  return () => {
    published ??= publish(deps).catch((error: unknown) => {
      published = undefined;
      throw error;
    });
    return published;
  };
}

async function publish({ store, files, now }: BuiltInDeps): Promise<string> {
  const bytes = await readFile(BUNDLE);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const known = await store.builtInVersion(sha256);
  if (known !== undefined) return known;
  const [versionId, buildId, blobId] = [newId(), newId(), newId()];
  const { size } = await files.write(blobId, only(bytes), BUNDLE_MAX_BYTES);
  await store.publishBuiltIn({ versionId, buildId, blobId, size, sha256, at: now() });
  return versionId;
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
