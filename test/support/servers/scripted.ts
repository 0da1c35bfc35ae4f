/**
 * A real HTTP server whose answers a test scripts, and a terminal that a test can read: for
 * commands.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Cli } from '../../../runner/cli/config.ts';

export const KEY = 'svc_a-key-that-must-never-be-printed';
export const ID = '0199c0de-0000-7000-8000-000000000001';
export const LINE = { message: 'unpacked 3 entries', timestamp: 0, level: 'info' };
export const FUNCTION = { name: 'title', id: ID, createdVersion: { id: 'v-1' } };

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: Buffer };
type Answer = { status?: number; json?: unknown; text?: string; headers?: Record<string, string> };

/** A server whose answers are scripted by `METHOD path`; the last of a list stays. */
export async function service(script: Record<string, Answer | Answer[]>) {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: await buffer(request) });
    const found = script[`${method} ${url}`];
    const answer = Array.isArray(found)
      ? found.length > 1
        ? found.shift()
        : found[0]
      : (found ?? { status: 404, json: { statusCode: 404, message: 'Build not found.' } });
    const { status = 200, json, text, headers: extra } = answer ?? {};
    response.writeHead(status, { 'content-type': 'application/json', ...extra });
    response.end(text ?? JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    baseUrl: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function terminal(baseUrl: string, cwd = '/') {
  const out: string[] = [];
  const said: string[] = [];
  const opened: Cli = {
    baseUrl,
    apiKey: KEY,
    cwd,
    print: (line) => out.push(line),
    say: (line) => said.push(line),
    pollMs: 1,
    userDir: () => '/dev/null', // nothing is kept
  };
  return { cli: opened, out, said };
}
