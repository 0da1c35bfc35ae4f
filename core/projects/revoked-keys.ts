/**
 * Which API keys were revoked, for what is judged often: each segment of a video. What the database
 * said is kept for a second, and not past a revocation in this core.
 */
import type { Store } from '../store/types.ts';

/** Whether the key was revoked within the last day; by its public part. */
export type IsRevoked = (keyId: string) => Promise<boolean>;

/** Of a key that another process may have revoked. Source: proto/spec/rest.md 6. */
const CACHE_MS = 1_000;
/** Ours: longer than any link lives. */
export const SINCE_MS = 86_400_000;

export function revokedKeys({
  store,
  now,
  steady,
}: {
  store: Pick<Store, 'revokedKeys' | 'onWake'>;
  now: () => number;
  steady: () => number;
}): IsRevoked {
  let known: { ids: Promise<ReadonlySet<string>>; until: number } | undefined;
  store.onWake('revocations', () => {
    known = undefined;
  });
  const read = async () => new Set(await store.revokedKeys(now() - SINCE_MS));

  return async (keyId) => {
    if (known === undefined || known.until <= steady())
      known = { ids: read(), until: steady() + CACHE_MS };
    const { ids } = known;
    try {
      return (await ids).has(keyId);
    } catch (error) {
      if (known?.ids === ids) known = undefined; // the next one asks again
      throw error;
    }
  };
}
