/**
 * What `tabern serve` and the runner that is its child say to each other: connections that the
 * gateway has accepted go over whole, so that no process stands between a client and its session;
 * and the runner's metrics come back when they are asked for.
 */
import type { Samples } from './metrics.ts';

/** The runner's first word: the door that connections may be handed over to. */
export type DoorOpened = { type: 'door'; address: string };

/** Goes with a socket. */
export type HandedOver = {
  type: 'connection';
  /** Base64 of what is to be read before anything that the socket still gives. */
  said: string;
};

export function isDoorOpened(message: unknown): message is DoorOpened {
  const { type, address } = Object(message) as Partial<DoorOpened>;
  return type === 'door' && typeof address === 'string';
}

export function isHandedOver(message: unknown): message is HandedOver {
  const { type, said } = Object(message) as Partial<HandedOver>;
  return type === 'connection' && typeof said === 'string';
}

/** Asks the runner for its metrics. */
export type MetricsAsked = { type: 'metrics' };

/** Its answer. */
export type MetricsTold = { type: 'metrics'; samples: Samples };

export function isMetricsAsked(message: unknown): message is MetricsAsked {
  return (Object(message) as Partial<MetricsAsked>).type === 'metrics';
}

export function isMetricsTold(message: unknown): message is MetricsTold {
  const { type, samples } = Object(message) as Partial<MetricsTold>;
  return type === 'metrics' && Array.isArray(samples);
}
