/** The counts of a webhook's days: written by what ends attempts and deliveries. */
import { addTimes } from '../../../delivery/answer-times.ts';
import type { DayCounts } from '../../types/deliveries.ts';
import { queries } from '../engine/statements.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

const DAY_MS = 86_400_000;
/** Ours: as long as deliveries are kept. */
const DAYS_KEPT = 30;

export const dayOf = (at: number): number => Math.floor(at / DAY_MS);

/** Adds to the counts of the day of `at`; a new day removes the webhook's old ones. */
export const dayCounter = preparedOnce((tx: Tx) => {
  const { row, write } = queries(tx);
  const read = row<[string, number], { answers: string }>(
    'SELECT answers FROM webhook_days WHERE webhook_id = ? AND day = ?',
  );
  const add = write<[number, number, number, string, string, number]>(`
    UPDATE webhook_days
    SET delivered = delivered + ?, failed = failed + ?, lost = lost + ?, answers = ?
    WHERE webhook_id = ? AND day = ?`);
  const insert = write<[number, number, number, string, string, number]>(`
    INSERT INTO webhook_days (delivered, failed, lost, answers, webhook_id, day)
    VALUES (?, ?, ?, ?, ?, ?)`);
  const removeOld = write<[string, number]>(
    'DELETE FROM webhook_days WHERE webhook_id = ? AND day < ?',
  );
  return (webhookId: string, at: number, counts: Partial<DayCounts>): void => {
    const { delivered = 0, failed = 0, lost = 0, answers = [] } = counts;
    const day = dayOf(at);
    const known = read(webhookId, day);
    const sum = known === undefined ? answers : addTimes(JSON.parse(known.answers), answers);
    const change = known === undefined ? insert : add;
    change(delivered, failed, lost, JSON.stringify(sum), webhookId, day);
    if (known === undefined) removeOld(webhookId, day - DAYS_KEPT);
  };
});
