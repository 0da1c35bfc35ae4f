/** What the database knows about how much there is, for metrics. */
import type { WorkKind } from './leases.ts';

/** Counted since the database was opened. */
export type Tally = {
  what: 'session' | 'delivery' | 'interrupted';
  labels: string[];
  count: number;
};

export type Figures = {
  work: { kind: WorkKind; waiting: number; running: number }[];
  webhooks: { status: string; count: number }[];
  /** Deliveries that wait, and that are under way. */
  pending: number;
  inFlight: number;
  /** When the delivery that has waited longest was due; null when none waits. */
  oldestDue: number | null;
  tallies: Tally[];
};

export type FigureOps = {
  /** From now on ends are counted; the first call begins, with nothing counted. */
  figures(): Figures;
};
