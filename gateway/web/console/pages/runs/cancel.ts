/** Cancels runs. */
import { api, sentenceOf } from '../../data/api.ts';
import type { Run } from '../../data/types.ts';
import { announce } from '../../parts/notice.tsx';

export function isOpenRun({ status }: Pick<Run, 'status'>): boolean {
  return status === 'PENDING' || status === 'RUNNING';
}

/** Cancels the runs, one after another, and says how many were. */
export async function cancelRuns(ids: readonly string[]): Promise<void> {
  let cancelled = 0;
  for (const id of ids) {
    try {
      await api(`/v1/functions/invocations/${id}/cancel`, {});
      cancelled += 1;
    } catch (error) {
      announce(sentenceOf(error));
      return;
    }
  }
  announce(cancelled === 1 ? 'The run is cancelled.' : `${cancelled} runs are cancelled.`);
}
