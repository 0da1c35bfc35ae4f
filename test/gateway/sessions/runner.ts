/** A gateway with the test's own handlers instead of a core. */
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { gatewayConfig } from '../../../gateway/config.ts';
import { type Gateway, type GatewayParts, startGateway } from '../../../gateway/main.ts';
import type { Resolve } from '../../../gateway/webhooks/ssrf-guard.ts';
import { openLog } from '../../../proto/common/log.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Call } from '../../../proto/rpc/local.ts';
import { type AllHandlers, localClients, SERVICES } from '../../../proto/rpc/services.ts';
import { allOverBytes, notBuilt } from '../../support/wire.ts';

export const KEY = 'svc_a-key-of-the-tests-only';

type Some = { [S in keyof AllHandlers]?: Partial<AllHandlers[S]> };
export type Answer = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  json: unknown;
};

/**
 * Handlers that serve what is given; the rest is not built, and a key other than KEY is refused.
 */
export function handlersOf(some: Some): AllHandlers {
  const all = Object.entries(SERVICES).map(([name, definition]) => {
    const own = some[name as keyof AllHandlers] as Record<string, unknown> | undefined;
    const handlers = Object.keys(definition).map((rpc) => [rpc, own?.[rpc] ?? notBuilt]);
    return [name, Object.fromEntries(handlers)];
  });
  const handlers = Object.fromEntries(all) as AllHandlers;
  const listProjects =
    some.projects?.listProjects ?? (async (_: object, call: Call) => known(call));
  return { ...handlers, projects: { ...handlers.projects, listProjects } };
}

function known(call: Call) {
  const key = call.metadata['x-svc-api-key'];
  if (!key) throw new Fault('API_KEY_MISSING', 'Missing API key.');
  if (key !== KEY) throw new Fault('API_KEY_INVALID', 'Invalid API key.');
  return { projects: [] };
}

/** Opens a gateway on a free port; every message goes through its bytes, as between processes. */
export async function openGateway(
  some: Some = {},
  resolve?: Resolve,
  more: Partial<Pick<GatewayParts, 'times' | 'connectionsMax' | 'log'>> = {},
): Promise<Gateway> {
  const clients = localClients(allOverBytes(handlersOf(some)), { onError: () => undefined });
  const config = gatewayConfig({ TABERN_PORT: '0' });
  const log = openLog({ role: 'test', level: 'silent' });
  const parts = { clients, gatewayToken: 'a-token', log };
  return startGateway(config, { ...parts, ...more, ...(resolve && { resolve }) });
}

/** One request on a separate connection, with the key unless `headers` replaces it. */
export function ask(
  url: string,
  method: string,
  path: string,
  options: { headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<Answer> {
  const { host } = new URL(url);
  const headers = { host, 'x-svc-api-key': KEY, ...options.headers };
  return new Promise((resolve, reject) => {
    const [hostname, port] = host.split(':');
    const sent = httpRequest(
      { hostname, port, method, path, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => {
          const json = text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(options.body);
  });
}

/** A JSON body with its header. */
export function json(value: unknown): { headers: Record<string, string>; body: string } {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) };
}

/**
 * Bytes over a raw socket; everything that comes back until the connection closes or `until` is
 * seen.
 */
export function raw(url: string, bytes: string | Buffer, until?: RegExp): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
      if (until?.test(text)) socket.destroy();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}

/** The answer is the table's: its body exactly, and the headers that every answer has. */
export function assertBody(
  { status, json: body, headers }: Answer,
  error: string,
  message: string,
): void {
  assert.equal(body, { statusCode: status, error, message });
  assert.is(headers['content-type'], 'application/json; charset=utf-8');
  assert.ok(headers['x-request-id']);
  assert.is(headers['x-content-type-options'], 'nosniff');
  assert.is(headers['cache-control'], 'no-store');
}
