/**
 * The gateway's lifecycle: it listens, serves and sends webhooks. close() drains: new requests are
 * answered 503, then new connections are refused, requests in flight finish, and after DRAIN_MAX_MS
 * the rest is aborted.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CONTEXT_TRANSFER_TIMEOUT_MS } from '../proto/common/limits.ts';
import type { Log } from '../proto/common/log.ts';
import type { Metrics } from '../proto/common/metrics.ts';
import { Fault } from '../proto/rpc/errors.ts';
import type { Clients } from '../proto/rpc/services.ts';
import { openApp } from './app.ts';
import {
  CONNECTION_CHECK_MS,
  CONNECTIONS_MAX,
  DRAIN_MAX_MS,
  type GatewayConfig,
  HEADERS_MAX_BYTES,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  SOCKET_IDLE_MS,
} from './config.ts';
import { shareConnections } from './http/connections.ts';
import { clientErrors, rawAnswer } from './http/errors.ts';
import type { HandOver } from './process/runner-process.ts';
import type { Port } from './process/upgrade-ipc.ts';
import { type ConsoleFiles, readConsole } from './routes/console/pages.ts';
import type { CoreProblem } from './routes/health.ts';
import { locator } from './sessions/runner-client.ts';
import { openRunnerTrust } from './sessions/runner-trust.ts';
import { isWebSocket, openTunnels, type Tunnels } from './sessions/websocket-proxy.ts';
import { startDispatcher } from './webhooks/sender-supervisor.ts';
import { openGuard, type Resolve } from './webhooks/ssrf-guard.ts';

/** With a request in flight, a kept-alive connection delays close() by keepAliveTimeout + 1 s. */
const CLOSE_IDLE_MS = 100;
/**
 * In milliseconds: each request is answered 503 with `connection: close` for this long before idle
 * connections are cut, so that requests already sent on them are not lost. Ours.
 */
const NOTICE_MS = 250;
/** Of `giveUp`: requests in flight end within this, and clients wait to be accepted. Ours. */
const GIVE_UP_MS = 10_000;

/** Timeouts of a connection: for headers, for idleness, and the interval of the check. */
export type ServerTimes = { headersMs: number; idleMs: number; checkMs: number };
const TIMES: ServerTimes = {
  headersMs: HEADERS_TIMEOUT_MS,
  idleMs: SOCKET_IDLE_MS,
  checkMs: CONNECTION_CHECK_MS,
};

export type GatewayParts = {
  clients: Clients;
  gatewayToken: string;
  log: Log;
  metrics?: Metrics;
  /** Hands a connection off to the runner of this service; absent without one. */
  handOver?: HandOver;
  /** Instead of listening at the configured address. */
  port?: Port | undefined;
  /** Why core cannot be reached; absent for core in this process. */
  coreProblem?: CoreProblem;
  /** DNS, for tests. */
  resolve?: Resolve;
  /** Another page and shorter times, in tests. */
  console?: { files?: ConsoleFiles; heartbeatMs?: number };
  /** In milliseconds; shorter in tests. */
  times?: ServerTimes;
  /** Smaller in tests. */
  connectionsMax?: number;
};
export type Gateway = AsyncDisposable & {
  /** The listening address, such as `http://127.0.0.1:4747`. */
  url: string;
  /** Whether it serves the console's page. */
  hasConsole: boolean;
  /** Answers 503 on /readyz from now on; all else is served as before. */
  refuseReadiness(): void;
  /** Settles when no WebSocket connection passes through this process. */
  idle(): Promise<void>;
  /** Its listening socket, for another process. */
  port(): Port;
  /**
   * Ends all but the WebSocket connections that pass through it, so that another process serves:
   * the answers say `connection: close`, then no connection is accepted. Settles when the requests
   * in flight are answered, or after GIVE_UP_MS; `cut` ends those that are left.
   */
  giveUp(): Promise<void>;
  cut(): void;
  /** Drains requests and closes; a second call waits for the first. */
  close(): Promise<void>;
};

/** Listens and serves. Rejects with node's error when the port is in use or may not be opened. */
export async function startGateway(config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  const { clients, gatewayToken, log } = parts;
  const [unready, draining] = [new AbortController(), new AbortController()];
  const leaving = new AbortController();
  const shown = config.console === 'on' ? { files: readConsole(), ...parts.console } : undefined;
  const runnerTrust = openRunnerTrust(config.coreTls, log);
  const guard = openGuard(config.webhookAllow, parts.resolve);
  const app = openApp({
    clients,
    gatewayToken,
    guard,
    log,
    publicUrl: config.publicUrl,
    coreProblem: parts.coreProblem,
    runnerTrust,
    console: shown,
    metrics: parts.metrics,
    draining: draining.signal,
    leaving: leaving.signal,
    unready: unready.signal,
  });
  const { server, busy } = await openServer(app.callback() as RequestListener, config, parts);
  const tunnels = openTunnels({
    clients,
    log,
    publicUrl: config.publicUrl,
    locate: locator({ clients, gatewayToken, runnerTrust }),
    // A TLS connection cannot be handed off: its state is in this process.
    handOver: config.tls === undefined ? parts.handOver : undefined,
  });
  server.on('upgrade', tunnels.upgrade);
  const url = await listenAt(server, config, parts.port);
  log.info({ url }, 'listening');
  const dispatcher = startDispatcher({
    client: clients.deliveries,
    token: gatewayToken,
    // Stable over restarts, so that claims of a lost gateway are taken over at once.
    senderId: `${hostname()}:${new URL(url).port}`,
    allow: config.webhookAllow,
    ca: config.webhookCa,
    log,
  });

  let closed: Promise<void> | undefined;
  const close = () => {
    draining.abort();
    leaving.abort();
    closed ??= Promise.all([tunnels.close(), drain(server), dispatcher.close()]).then(() => {});
    return closed;
  };
  const giving = givingUp(server, { busy, tunnels, dispatcher, leaving, draining });
  const hasConsole = shown?.files !== undefined;
  const refuseReadiness = () => unready.abort();
  const shared = { url, hasConsole, refuseReadiness, idle: tunnels.idle, ...giving };
  return { ...shared, close, [Symbol.asyncDispose]: close };
}

async function openServer(
  listener: RequestListener,
  { tls }: GatewayConfig,
  { times = TIMES, connectionsMax = CONNECTIONS_MAX, log }: GatewayParts,
): Promise<{ server: Server; busy: Busy }> {
  const inFlight = new Map<Socket, ServerResponse>();
  const options = optionsOf(times);
  const server =
    tls === undefined
      ? createServer(options)
      : await (await import('./http/tls.ts')).secureServer(tls, options, log);
  shareConnections(server, connectionsMax);
  server.timeout = times.idleMs;
  const serve: RequestListener = (request, response) => {
    inFlight.set(request.socket, response);
    const { socket } = request;
    response.once('close', () => inFlight.get(socket) === response && inFlight.delete(socket));
    return listener(request, response);
  };
  server.on('request', serve);
  // By default node answers an unknown Expect with an empty 417; RFC 9110 10.1.1 allows to
  // continue.
  server.on('checkExpectation', serve);
  server.on('clientError', clientErrors(inFlight, randomUUID));
  server.on('connect', (_request, socket) => {
    const fault = new Fault('METHOD_NOT_ALLOWED', 'CONNECT is not allowed here.', { allow: 'GET' });
    socket.end(rawAnswer(fault, randomUUID()));
  });
  return { server, busy: inFlight };
}

/** Requests that are not answered yet. */
type Busy = { readonly size: number };

function optionsOf(times: ServerTimes): ServerOptions {
  return {
    // The longest request: an upload of a context. Other requests have shorter timeouts, in
    // gateway/http/body.ts and routes/.
    requestTimeout: CONTEXT_TRANSFER_TIMEOUT_MS,
    headersTimeout: times.headersMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: times.checkMs,
    maxHeaderSize: HEADERS_MAX_BYTES,
    // By default node answers a missing Host with an empty 400; app.ts answers it with a JSON
    // error.
    requireHostHeader: false,
    // Java's client requests h2c with each request; only WebSocket upgrades leave HTTP here.
    shouldUpgradeCallback: isWebSocket,
  };
}

async function listenAt(server: Server, config: GatewayConfig, port?: Port): Promise<string> {
  if (port === undefined) server.listen(config.port, config.host);
  else server.listen(port);
  await once(server, 'listening');
  return urlOf(server, config);
}

type GivingUp = {
  busy: Busy;
  tunnels: Pick<Tunnels, 'handshakes'>;
  dispatcher: { close(): Promise<void> };
  leaving: AbortController;
  draining: AbortController;
};

function givingUp(
  server: Server,
  { busy, tunnels, dispatcher, leaving, draining }: GivingUp,
): Pick<Gateway, 'port' | 'giveUp' | 'cut'> {
  return {
    port() {
      // a private member: Node passes it to other processes, and makes a server of it there
      const { _handle: handle } = server as unknown as { _handle: Port | null };
      if (handle === null) throw new Error('the gateway does not listen');
      return handle;
    },
    async giveUp() {
      await dispatcher.close(); // while all else is served
      leaving.abort();
      await stopAccepting(server, () => busy.size + tunnels.handshakes());
      draining.abort(); // what is left is refused
    },
    cut() {
      server.closeAllConnections();
      server.close(); // its timers, too
    },
  };
}

/** `busy`: requests and handshakes that are not answered yet. */
async function stopAccepting(server: Server, busy: () => number): Promise<void> {
  await notice();
  NetServer.prototype.close.call(server); // http's own would cut idle connections at once
  const startedAt = performance.now();
  do {
    server.closeIdleConnections();
    await pause(CLOSE_IDLE_MS);
  } while (busy() > 0 && performance.now() - startedAt < GIVE_UP_MS);
}

async function drain(server: Server): Promise<void> {
  if (!server.listening) return; // it gave up
  const startedAt = performance.now();
  // Without clients, no 503 is needed.
  const clients = await promisify(server.getConnections.bind(server))();
  if (clients > 0) await notice();
  const closed = once(server, 'close');
  server.close();
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_MS);
  const leftMs = DRAIN_MAX_MS - (performance.now() - startedAt);
  const cut = setTimeout(() => server.closeAllConnections(), leftMs);
  try {
    await closed;
  } finally {
    clearInterval(idle);
    clearTimeout(cut);
  }
}

/** A process without CPU reads what has come meanwhile, too: timers come before reads. */
async function notice(): Promise<void> {
  await pause(NOTICE_MS);
  await turn();
}

function urlOf(server: Server, { host, tls }: GatewayConfig): string {
  const { port } = server.address() as AddressInfo;
  const isEverywhere = host === '0.0.0.0' || host === '::';
  const name = isEverywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port}`;
}
