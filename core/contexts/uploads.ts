/**
 * Uploads of contexts: one of each project's at a time, from its first byte until it is proved.
 * Each may take 512 MiB of the disk and minutes of a processor; a signed URL asks for no key.
 */
import { Fault } from '../../proto/rpc/errors.ts';

export type Uploads = {
  /** Dispose of it when its bytes are there. Throws CONCURRENCY_LIMIT while there is another. */
  begin(projectId: string): Disposable;
  /** One that has its bytes: never refused. */
  prove(projectId: string): Disposable;
};

export function openUploads(): Uploads {
  const underWay = new Map<string, number>();
  const hold = (projectId: string): Disposable => {
    underWay.set(projectId, (underWay.get(projectId) ?? 0) + 1);
    return {
      [Symbol.dispose]() {
        const left = (underWay.get(projectId) ?? 0) - 1;
        if (left > 0) underWay.set(projectId, left);
        else underWay.delete(projectId);
      },
    };
  };
  return {
    begin(projectId) {
      if (!underWay.has(projectId)) return hold(projectId);
      throw new Fault('CONCURRENCY_LIMIT', 'Max concurrent uploads to contexts (1) reached.', {
        limit: 1,
        current: 1,
      });
    },
    prove: hold,
  };
}
