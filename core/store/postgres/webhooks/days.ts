/** The counts of a webhook's days: written by what ends attempts and deliveries. */
import type { DayCounts } from '../../types/deliveries.ts';
import { statements } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

const DAY_MS = 86_400_000;
/** Ours: as long as deliveries are kept. */
const DAYS_KEPT = 30;

export const dayOf = (at: number): number => Math.floor(at / DAY_MS);

/**
 * Adds to the counts of the day of `at` before the commit, and removes the webhook's old days.
 * Several operations may add at the same time, so the database adds.
 */
export function dayCounter(tx: Tx) {
  const { write } = statements(tx);
  const add = write<[object]>(`
    INSERT INTO webhook_days (webhook_id, day, delivered, failed, lost, answers)
    VALUES (@webhookId, @day, @delivered, @failed, @lost, @answers)
    ON CONFLICT (webhook_id, day) DO UPDATE
    SET delivered = webhook_days.delivered + excluded.delivered,
      failed = webhook_days.failed + excluded.failed,
      lost = webhook_days.lost + excluded.lost,
      answers = (
        SELECT COALESCE(json_agg(
          COALESCE(old.n::BIGINT, 0) + COALESCE(new.n::BIGINT, 0) ORDER BY range), '[]')::TEXT
        FROM json_array_elements_text(webhook_days.answers::JSON) WITH ORDINALITY AS old (n, range)
          FULL JOIN json_array_elements_text(excluded.answers::JSON)
            WITH ORDINALITY AS new (n, range) USING (range))`);
  const removeOld = write<[string, number]>(
    'DELETE FROM webhook_days WHERE webhook_id = ? AND day < ?',
  );
  return (webhookId: string, at: number, counts: Partial<DayCounts>): void => {
    const { delivered = 0, failed = 0, lost = 0, answers = [] } = counts;
    const day = dayOf(at);
    const row = { webhookId, day, delivered, failed, lost, answers: JSON.stringify(answers) };
    tx.atEnd(`3 ${webhookId}`, () => {
      add(row);
      removeOld(webhookId, day - DAYS_KEPT);
    });
  };
}
