/**
 * Prometheus metrics of a process. Off unless TABERN_METRICS_LISTEN is set: only then prom-client
 * is loaded and values are stored. Labels have a small fixed set of values: never an id, a URL, a
 * name or other project data.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Label names; each has few values. */
export type Labels = Readonly<Record<string, string>>;

/** One metric with its labels; defined once, next to the code that it measures. */
export type Family = {
  name: string;
  help: string;
  labels?: readonly string[];
  /** Upper bounds, for histograms. */
  buckets?: readonly number[];
};

/** prom-client's JSON of one process: plain data that another process can receive. */
export type Samples = readonly object[];

export type Metrics = {
  /** Increments a counter. */
  add(family: Family, labels?: Labels, by?: number): void;
  /** Sets a gauge. */
  set(family: Family, value: number, labels?: Labels): void;
  /** Observes a value of a histogram, in the unit at the end of its name. */
  observe(family: Family, value: number, labels?: Labels): void;
  /** Called before each reading, for values that are cheaper to read than to update. */
  atReading(read: () => void | Promise<void>): void;
  /** All current values. */
  samples(): Promise<Samples>;
};

/**
 * In milliseconds. Ours: relevant stalls are longer; a finer resolution would wake an idle machine.
 */
const LOOP_RESOLUTION_MS = 50;
const NS_PER_S = 1e9;

const LOOP_DELAY: Family = {
  name: 'tabern_event_loop_delay_seconds',
  help: 'How late the event loop ran what was due, since the last reading.',
  labels: ['role', 'quantile'],
};
const CPU: Family = {
  name: 'tabern_process_cpu_seconds',
  help: 'Processor time of the process so far, user and system.',
  labels: ['role'],
};
const MEMORY: Family = {
  name: 'tabern_process_resident_bytes',
  help: 'Memory of the process that is resident.',
  labels: ['role'],
};

/** Stores nothing. */
export const NO_METRICS: Metrics = {
  add() {},
  set() {},
  observe() {},
  atReading() {},
  samples: async () => [],
};

/** Stores the values, and metrics of the process itself. */
export async function openMetrics(role: string): Promise<Metrics> {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const registry = new Registry();
  const readers: (() => void | Promise<void>)[] = [];

  function kept<M>(make: (options: object) => M): (family: Family) => M {
    const known = new Map<string, M>();
    return ({ name, help, labels = [], buckets }) => {
      const found = known.get(name);
      if (found !== undefined) return found;
      const options = { name, help, labelNames: labels, registers: [registry] };
      const made = make(buckets === undefined ? options : { ...options, buckets });
      known.set(name, made);
      return made;
    };
  }
  const counter = kept((options) => new Counter(options as never));
  const gauge = kept((options) => new Gauge(options as never));
  const histogram = kept((options) => new Histogram(options as never));

  const metrics: Metrics = {
    add: (family, labels = {}, by = 1) => counter(family).inc(labels, by),
    set: (family, value, labels = {}) => gauge(family).set(labels, value),
    observe: (family, value, labels = {}) => histogram(family).observe(labels, value),
    atReading: (read) => void readers.push(read),
    async samples() {
      await Promise.all(readers.map((read) => read()));
      return registry.getMetricsAsJSON();
    },
  };
  watchProcess(metrics, role);
  return metrics;
}

/** Prometheus's text format of several processes, with each family once. */
export async function textOf(all: readonly Samples[]): Promise<string> {
  const { AggregatorRegistry } = await import('prom-client');
  return AggregatorRegistry.aggregate(all as never).metrics();
}

function watchProcess(metrics: Metrics, role: string): void {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  delay.enable();
  metrics.atReading(() => {
    for (const quantile of [0.5, 0.99, 1]) {
      const seconds = late(delay.percentile(quantile * 100));
      metrics.set(LOOP_DELAY, seconds, { role, quantile: String(quantile) });
    }
    delay.reset();
    const { user, system } = process.cpuUsage();
    metrics.set(CPU, (user + system) / 1e6, { role });
    metrics.set(MEMORY, process.memoryUsage.rss(), { role });
  });
}

/** Node measures the time between two ticks: the excess over its resolution is the delay. */
function late(ns: number): number {
  return Math.max(0, ns / NS_PER_S - LOOP_RESOLUTION_MS / 1_000);
}
