/**
 * Limits of concurrent uploads, per API key and in total. The total is shared fairly by key, so
 * that no number of keys uses the last slot.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { openShares } from '../../../proto/sharing/shares.ts';
import { UPLOADS_MAX, UPLOADS_OF_KEY_MAX } from '../../config.ts';

/** Holds a slot of the call's key until disposed. Throws CONCURRENCY_LIMIT when none is free. */
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
