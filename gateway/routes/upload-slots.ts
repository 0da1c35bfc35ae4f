/** Places for uploads: so many at once, of one key and of all, whatever is uploaded. */
import { Fault } from '../../proto/errors.ts';
import type { CallOptions } from '../../proto/rpc.ts';
import { UPLOADS_MAX, UPLOADS_OF_KEY_MAX } from '../config.ts';

/**
 * A place for one upload of the call's key until it is disposed of. Throws CONCURRENCY_LIMIT when
 * there is none.
 */
export type EnterUpload = (call: CallOptions) => Disposable;

export function uploadSlots(): EnterUpload {
  const running = new Map<string, number>();
  let total = 0;
  return ({ metadata }) => {
    const key = metadata?.['x-svc-api-key'] ?? '';
    const own = running.get(key) ?? 0;
    const limit = own >= UPLOADS_OF_KEY_MAX ? UPLOADS_OF_KEY_MAX : UPLOADS_MAX;
    if (own >= UPLOADS_OF_KEY_MAX || total >= UPLOADS_MAX) {
      throw new Fault('CONCURRENCY_LIMIT', `Max concurrent uploads (${limit}) reached.`, {
        ...{ limit, current: limit },
      });
    }
    running.set(key, own + 1);
    total += 1;
    return {
      [Symbol.dispose]() {
        const left = (running.get(key) ?? 1) - 1;
        if (left === 0) running.delete(key);
        else running.set(key, left);
        total -= 1;
      },
    };
  };
}
