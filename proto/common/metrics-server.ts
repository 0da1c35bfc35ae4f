/**
 * GET /metrics on a separate address, which clients need not reach: metrics of the whole
 * installation, without a key. Web pages cannot read them: requests from other sites are refused,
 * and on loopback also foreign Host headers. One request is answered at a time. Other requests of
 * operators may be answered beside it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { foreignRequest } from '../network/local-requests.ts';
import type { Place } from './env.ts';
import type { Log } from './log.ts';
import { type Samples, textOf } from './metrics.ts';

const TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** In milliseconds: scrapers use a new connection each time, or repeat within a moment. Ours. */
const KEEP_ALIVE_MS = 5_000;
const CONNECTIONS_MAX = 32;
/**
 * In milliseconds, for the headers of a request; then its connection is closed. Idle connections
 * must not keep probes out for long. Ours.
 */
const HEADERS_MS = 5_000;
/** In milliseconds: how often Node looks for such connections. */
const CHECK_MS = 1_000;

export type MetricsServer = AsyncDisposable & { url: string };

/** `serve` returns whether it answers; `close` ends answers that wait. */
export type OtherRequests = {
  serve(request: IncomingMessage, response: ServerResponse): boolean;
  close(): void;
};

/** Listens. Rejects with node's error when the port is in use. */
export async function openMetricsServer(options: {
  listen: Place;
  read: () => Promise<readonly Samples[]>;
  log: Log;
  beside?: OtherRequests | undefined;
}): Promise<MetricsServer> {
  const { listen, read, log, beside } = options;
  let reading: Promise<string> | undefined;
  const text = async (): Promise<string> => {
    reading ??= read().then(textOf);
    try {
      return await reading;
    } finally {
      reading = undefined;
    }
  };
  const times = { headersTimeout: HEADERS_MS, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(times, async (request, response) => {
    request.resume();
    const foreign = foreignRequest(request.headers, { boundTo: listen.host, takesAnyName: true });
    if (foreign !== undefined) {
      response.writeHead(403, { 'content-type': 'text/plain' }).end(`${foreign}\n`);
      return;
    }
    if (beside?.serve(request, response)) return;
    const isAsked = request.method === 'GET' || request.method === 'HEAD';
    if (request.url?.split('?')[0] !== '/metrics' || !isAsked) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('GET /metrics\n');
      return;
    }
    try {
      const body = await text();
      response.writeHead(200, { 'content-type': TYPE, 'cache-control': 'no-store' }).end(body);
    } catch (error) {
      log.error({ err: error }, 'reading metrics failed');
      response.writeHead(500, { 'content-type': 'text/plain' }).end('see the log\n');
    }
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.maxConnections = CONNECTIONS_MAX;
  server.listen(listen.port, listen.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const url = `http://${host}:${port}/metrics`;
  log.info({ url }, 'serving metrics');
  return {
    url,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      beside?.close();
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
