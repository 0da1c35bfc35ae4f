/**
 * Figures in SQLite. Ends are counted by triggers of this connection alone (TEMP), from the first
 * reading on, so that no operation can forget one and nobody pays who reads no metrics. What an
 * operation that is undone has counted stays counted: that is a full disk, and rare.
 */
import type { FigureOps, Figures, Tally } from '../types/figures.ts';
import type { WorkKind } from '../types/leases.ts';
import type { Tx } from './engine/transaction.ts';

/** Sentences of the runner and of this folder, up to a colon, as labels; others are `other`. */
const REASONS: Readonly<Record<string, string>> = {
  'the session was released': 'released',
  'It was released.': 'released',
  'its last client has left': 'left',
  'session timed out': 'timeout',
  'Its time was over.': 'timeout',
  'nobody connected in time': 'unvisited',
  'the browser was lost': 'browser_lost',
  'the browser could not be started': 'browser_failed',
  'Its browser was not ready in time.': 'browser_failed',
  'the service is shutting down': 'shutdown',
  'The runner was lost.': 'runner_lost',
  'Its runner did not end it in time.': 'runner_lost',
  'No runner was free in time.': 'no_runner',
};

const TRIGGERS = `
  CREATE TEMP TRIGGER tally_sessions AFTER UPDATE OF ended_at ON main.sessions
  WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
    SELECT tally('session', NEW.status, NEW.end_reason);
  END;
  CREATE TEMP TRIGGER tally_deliveries AFTER UPDATE OF state ON main.deliveries
  WHEN OLD.state <> NEW.state AND NEW.state NOT IN ('pending', 'in_flight') BEGIN
    SELECT tally('delivery', NEW.state, '');
  END;
  CREATE TEMP TRIGGER tally_interrupted AFTER UPDATE OF outcome ON main.attempts
  WHEN NEW.outcome = 'interrupted' BEGIN
    SELECT tally('interrupted', '', '');
  END;`;

export function figureOps({ db }: Tx): FigureOps {
  const tallies = new Map<string, Tally>();
  const sql = prepare({ db });
  let isCounting = false;

  function count(what: Tally['what'], first: string, reason: string | null): null {
    const second = reason === null ? 'function' : (REASONS[reason.replace(/:.*/s, '')] ?? 'other');
    const labels = { session: [first, second], delivery: [first], interrupted: [] }[what];
    const key = [what, ...labels].join(' ');
    const tally = tallies.get(key) ?? { what, labels, count: 0 };
    tally.count += 1;
    tallies.set(key, tally);
    return null;
  }

  return {
    figures() {
      if (!isCounting) {
        db.function('tally', count as (...given: unknown[]) => unknown);
        db.exec(TRIGGERS);
        isCounting = true;
      }
      return {
        ...(sql.deliveries.get() as DeliveryFigures),
        ...lists(sql),
        tallies: [...tallies.values()],
      };
    },
  };
}

type DeliveryFigures = Pick<Figures, 'pending' | 'inFlight' | 'oldestDue'>;

function lists(sql: ReturnType<typeof prepare>): Pick<Figures, 'work' | 'webhooks'> {
  return { work: sql.work.all(), webhooks: sql.webhooks.all() };
}

function prepare({ db }: Pick<Tx, 'db'>) {
  return {
    work: db.prepare<[], { kind: WorkKind; waiting: number; running: number }>(`
      SELECT kind, SUM(ready) AS waiting, SUM(running) AS running FROM queues GROUP BY kind`),
    webhooks: db.prepare<[], { status: string; count: number }>(`
      SELECT status, COUNT(*) AS count FROM webhooks WHERE status <> 'deleted' GROUP BY status`),
    // Indexes deliveries_due, deliveries_leased, webhooks_due.
    deliveries: db.prepare<[], DeliveryFigures>(`
      SELECT
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_due WHERE state = 'pending')
          AS pending,
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_leased WHERE state = 'in_flight')
          AS inFlight,
        (SELECT MIN(next_due) FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted')
          AS oldestDue`),
  };
}
