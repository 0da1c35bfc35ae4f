/**
 * Places for uploads: so many at once, of one key and of all, whatever is uploaded. Those of all
 * are shared by key, so that no number of keys takes the last one.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { openShares } from '../../../proto/sharing/shares.ts';
import { UPLOADS_MAX, UPLOADS_OF_KEY_MAX } from '../../config.ts';

/**
 * A place for one upload of the call's key until it is disposed of. Throws CONCURRENCY_LIMIT when
 * there is none.
 */
export type EnterUpload = (call: CallOptions) => Disposable;

export function uploadSlots(): EnterUpload {
  const shares = openShares(UPLOADS_MAX, UPLOADS_OF_KEY_MAX);
  return ({ metadata }) => {
    const key = metadata?.['x-svc-api-key'] ?? '';
    if (!shares.acquire(key, 1)) {
      const current = shares.heldBy(key);
      const limit = Math.max(1, current);
      const message = `Max concurrent uploads (${limit}) reached.`;
      throw new Fault('CONCURRENCY_LIMIT', message, { limit, current });
    }
    return { [Symbol.dispose]: () => shares.release(key, 1) };
  };
}
