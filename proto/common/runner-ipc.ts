/**
 * IPC between `tabern serve` and the runner that is its child process. Sockets that the gateway
 * accepted are passed to the runner, so that a client is connected to its session without a process
 * in between. The runner returns its metrics on request.
 */
import type { Samples } from './metrics.ts';

/** The runner's first message: the address of the session server, which takes sockets. */
export type SessionServerOpened = { type: 'session-server'; address: string };

/** Sent with a socket. */
export type SocketHandOff = {
  type: 'connection';
  /** Base64 of the bytes that the gateway has read from the socket already. */
  bytesRead: string;
};

export function isSessionServerOpened(message: unknown): message is SessionServerOpened {
  const { type, address } = Object(message) as Partial<SessionServerOpened>;
  return type === 'session-server' && typeof address === 'string';
}

export function isSocketHandOff(message: unknown): message is SocketHandOff {
  const { type, bytesRead } = Object(message) as Partial<SocketHandOff>;
  return type === 'connection' && typeof bytesRead === 'string';
}

/** Requests the runner's metrics. */
export type MetricsAsked = { type: 'metrics' };

/** The response. */
export type MetricsTold = { type: 'metrics'; samples: Samples };

export function isMetricsAsked(message: unknown): message is MetricsAsked {
  return (Object(message) as Partial<MetricsAsked>).type === 'metrics';
}

export function isMetricsTold(message: unknown): message is MetricsTold {
  const { type, samples } = Object(message) as Partial<MetricsTold>;
  return type === 'metrics' && Array.isArray(samples);
}
