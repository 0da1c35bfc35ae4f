/**
 * IPC between `tabern serve` and the runner that is its child process. Sockets that the gateway
 * accepted are passed to the runner, so that a client is connected to its session without a process
 * in between; the gateway keeps them open until the runner has closed them. The runner begins to
 * work on request, returns its metrics on request, and drains and ends on request.
 */
import type { Samples } from './metrics.ts';

/** The variable of a prepared runner: the pid of its parent, whose first message it awaits. */
export const PREPARED_BY = 'TABERN_PREPARED_BY';

/**
 * The first message. Before it, a runner only loads its modules. `core`: the address of core.
 * `runnerId`: its own, or that of the one that it replaces; that of the data directory without.
 */
export type StartAsked = { type: 'start'; core: string | undefined; runnerId?: string | undefined };

export function isStartAsked(message: unknown): message is StartAsked {
  return (Object(message) as Partial<StartAsked>).type === 'start';
}

/** The runner's first message: the address of the session server, which takes sockets. */
export type SessionServerOpened = { type: 'session-server'; address: string; runnerId: string };

/** Sent with a socket. */
export type SocketHandOff = {
  type: 'connection';
  /** Of the connection. */
  id: number;
  /** Base64 of the bytes that the gateway has read from the socket already. */
  bytesRead: string;
};

export function isSessionServerOpened(message: unknown): message is SessionServerOpened {
  const { type, address, runnerId } = Object(message) as Partial<SessionServerOpened>;
  const isWhole = typeof address === 'string' && typeof runnerId === 'string';
  return type === 'session-server' && isWhole;
}

export function isSocketHandOff(message: unknown): message is SocketHandOff {
  const { type, id, bytesRead } = Object(message) as Partial<SocketHandOff>;
  return type === 'connection' && typeof id === 'number' && typeof bytesRead === 'string';
}

/** The runner has closed a connection that it was handed. */
export type SocketClosed = { type: 'connection-closed'; id: number };

export function isSocketClosed(message: unknown): message is SocketClosed {
  const { type, id } = Object(message) as Partial<SocketClosed>;
  return type === 'connection-closed' && typeof id === 'number';
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

/** Requests a drain, whose time the parent process measures. */
export type DrainAsked = { type: 'drain' };

export function isDrainAsked(message: unknown): message is DrainAsked {
  return (Object(message) as Partial<DrainAsked>).type === 'drain';
}

/** Requests the end without a drain, or the end of the drain. */
export type EndAsked = { type: 'end' };

export function isEndAsked(message: unknown): message is EndAsked {
  return (Object(message) as Partial<EndAsked>).type === 'end';
}
