/** How core is told the outcome of a lease: once, until it listens or that is of no more use. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { isPassing } from './log-shipper.ts';

/** Ours: between two tries to tell core. */
const RETRY_MS = 500;
/** Ours: for the outcome of work that a runner's end cut short, when core may be gone too. */
const LAST_WORDS_MS = 2_000;

/** How long core is tried: until the lease is lost; a runner that is ending has a moment only. */
export function patience({ lost, stopped }: Record<'lost' | 'stopped', AbortSignal>): AbortSignal {
  return AbortSignal.any([lost, stopped.aborted ? AbortSignal.timeout(LAST_WORDS_MS) : stopped]);
}

/** `tell` is repeated: a second time must change nothing. Never rejects. */
export async function tellOutcome(
  tell: (options: CallOptions) => Promise<{ accepted: boolean }>,
  { call, log, over }: { call: CallOptions; log: Log; over: AbortSignal },
): Promise<void> {
  while (!over.aborted) {
    try {
      const { accepted } = await tell({ ...call, signal: over });
      if (!accepted) log.warn('the outcome came too late: the lease was lost');
      return;
    } catch (error) {
      if (over.aborted) return;
      if (!isPassing(error)) {
        log.error({ err: error }, 'core refused an outcome');
        return;
      }
      await sleep(RETRY_MS);
    }
  }
}
