/**
 * Recently revoked API keys, for frequent checks such as each segment of a video. Results of the
 * database are cached for a second, and not beyond a revocation by this core.
 */
import type { Store } from '../store/types.ts';

/** Whether the key was revoked within the last day; by its public part. */
export type IsRevoked = (keyId: string) => Promise<boolean>;

/** Cache time of a key that another process may have revoked. Source: proto/spec/rest.md 6. */
const CACHE_MS = 1_000;
/** Ours: longer than the validity of any link. */
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
      if (known?.ids === ids) known = undefined; // the next call reads it again
      throw error;
    }
  };
}
