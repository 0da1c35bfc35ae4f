/**
 * Metrics in PostgreSQL. Each core counts the ends that it wrote: a trigger tells them to its
 * connection as notices (schema/0001_init.sql), which are counted after the commit.
 */
import { must } from '../../../../proto/common/must.ts';
import { reasonLabel } from '../../operations/texts.ts';
import type { EndCount, MetricOps, StoreMetrics } from '../../types/maintenance.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** `[what, ...labels]`. */
type End = [what: EndCount['what'], first?: string, reason?: string | null];

export class EndCounts {
  readonly #counts = new Map<string, EndCount>();
  #isCounting = false;

  start(): void {
    this.#isCounting = true;
  }

  /** Of a notice. */
  add({ message, detail }: Readonly<Record<string, string | undefined>>): void {
    if (!this.#isCounting || message !== 'end' || detail === undefined) return;
    const [what, first = '', reason = null] = JSON.parse(detail) as End;
    const labels = { session: [first, reasonLabel(reason)], delivery: [first], interrupted: [] };
    const key = [what, ...labels[what]].join(' ');
    const counted = this.#counts.get(key) ?? { what, labels: labels[what], count: 0 };
    counted.count += 1;
    this.#counts.set(key, counted);
  }

  all(): EndCount[] {
    return [...this.#counts.values()];
  }
}

export function metricOps(tx: Tx, ends: EndCounts): InReads<MetricOps> {
  const { row, rows } = statements(tx);
  const ofWork = rows<[], StoreMetrics['work'][number]>(`
    SELECT kind, SUM(ready)::BIGINT AS waiting, SUM(running)::BIGINT AS running
    FROM queues GROUP BY kind ORDER BY kind`);
  const ofWebhooks = rows<[], StoreMetrics['webhooks'][number]>(`
    SELECT status, COUNT(*) AS count FROM webhooks WHERE status <> 'deleted' GROUP BY status`);
  // Indexes deliveries_due, deliveries_leased, webhooks_due.
  const ofDeliveries = row<[], Pick<StoreMetrics, 'pending' | 'inFlight' | 'oldestDue'>>(`
    SELECT
      (SELECT COUNT(*) FROM deliveries WHERE state = 'pending') AS pending,
      (SELECT COUNT(*) FROM deliveries WHERE state = 'in_flight') AS "inFlight",
      (SELECT MIN(next_due) FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted')
        AS "oldestDue"`);
  return {
    *metrics() {
      ends.start();
      const [work, webhooks, deliveries] = [ofWork(), ofWebhooks(), ofDeliveries()];
      return {
        ...must(yield* deliveries, 'counts'),
        work: yield* work,
        webhooks: yield* webhooks,
        counts: ends.all(),
      };
    },
  };
}
