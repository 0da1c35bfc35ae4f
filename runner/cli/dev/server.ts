/**
 * The local server of `tabern dev`: runs functions by name, one at a time, and responds with the
 * result. Routes and responses are those of proto/spec/functions.md 9, except that web pages of
 * other sites are refused and that an invocation needs a JSON content type. The page of the runs
 * (pages.ts) is ours; it starts a run by POST /console/api/runs {functionName, params}.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Place } from '../../../proto/common/env.ts';
import { PARAMS_MAX_BYTES } from '../../../proto/common/limits.ts';
import { foreignRequest } from '../../../proto/network/local-requests.ts';
import { isObject, parseJson } from '../api.ts';
import { CliError } from '../config.ts';
import { type DevPages, RUNS_PATH } from './pages.ts';
import type { DevOutcome } from './runs.ts';

/** In bytes. Ours: params, and the `context` that other tools also send. */
const BODY_MAX_BYTES = 2 * PARAMS_MAX_BYTES;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const NOT_JSON = 'Content-Type must be application/json, as `curl --json` sends it';
const INVOKE = /^\/v1\/functions\/([^/]+)\/invoke$/;

/** `begun` is called with the id of the run, when it begins. */
export type DevWanted = { name: string; params: object; begun?: (id: string) => void };

export type DevFunctions = {
  /** Why no function can run now: the sources cannot be built. */
  problem(): string | undefined;
  has(name: string): boolean;
  run(wanted: DevWanted, signal: AbortSignal): Promise<DevOutcome>;
  /** The page of the runs; absent when the console is not built. */
  pages?: DevPages | undefined;
};

/** Throws CliError when the server cannot listen at this place. */
export async function openDevServer(
  where: Place,
  functions: DevFunctions,
): Promise<AsyncDisposable & { url: string }> {
  let isBusy = false;
  const closing = new AbortController();

  /** Why the function cannot run now, as a status and a sentence. */
  function refusalOf(name: string): [status: number, message: string] | undefined {
    const problem = functions.problem();
    if (problem !== undefined) return [503, problem];
    if (!functions.has(name)) return [404, `there is no function "${name}"`];
    return isBusy ? [503, 'another invocation is under way; wait for its end'] : undefined;
  }

  /** For the page, which reads the run while it lasts: it goes on when the page is closed. */
  async function start(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isJson(request)) return refuseStart(response, 415, NOT_JSON);
    const body = await bodyOf(request);
    const params = typeof body === 'string' ? body : paramsIn(body);
    if (typeof params === 'string') return refuseStart(response, 400, params);
    const { functionName: name } = body as { functionName?: unknown };
    if (typeof name !== 'string')
      return refuseStart(response, 400, 'functionName must be a string');
    const refusal = refusalOf(name);
    if (refusal) return refuseStart(response, ...refusal);
    isBusy = true;
    const begun = (id: string) => send(response, 201, JSON.stringify({ id }));
    const running = functions.run({ name, params, begun }, closing.signal);
    // the page and the terminal show how it ended
    await running
      .catch(() => undefined)
      .finally(() => {
        isBusy = false;
      });
  }

  async function invoke(name: string, request: IncomingMessage, response: ServerResponse) {
    const problem = functions.problem();
    if (problem !== undefined) return refuse(response, 503, problem);
    if (!functions.has(name)) return refuse(response, 404, `there is no function "${name}"`);
    if (!isJson(request)) return refuse(response, 415, NOT_JSON);
    const body = await bodyOf(request);
    const params = typeof body === 'string' ? body : paramsIn(body);
    if (typeof params === 'string') return refuse(response, 400, params);
    const refusal = refusalOf(name);
    if (refusal) return refuse(response, ...refusal);
    isBusy = true;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const outcome = await functions.run({ name, params }, gone.signal);
      if ('failure' in outcome) {
        send(response, 500, JSON.stringify({ error: outcome.failure }));
      } else {
        // the published local server responds to undefined and null alike
        const { json = 'null' } = outcome;
        send(response, 200, json === 'null' ? '{}' : json);
      }
    } finally {
      isBusy = false;
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = URL.parse(request.url ?? '', 'http://dev')?.pathname ?? '';
    const name = nameOf(path);
    const foreign = foreignRequest(request.headers, { boundTo: where.host });
    if (foreign !== undefined) return refuse(response, 403, foreign);
    if (request.method === 'GET' && path === '/') return send(response, 200, '{"ok":true}');
    if (request.method === 'GET' && functions.pages?.answer(path, response)) return;
    if (request.method === 'POST' && name !== undefined) return invoke(name, request, response);
    const isStart = request.method === 'POST' && path === RUNS_PATH && functions.pages;
    if (isStart) return start(request, response);
    return refuse(response, 404, 'POST /v1/functions/<name>/invoke runs a function');
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      refuse(response, 500, error instanceof Error ? error.message : String(error));
    });
  });
  server.listen(where.port, where.host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(cannotListen(error, where));
  });
  server.on('error', (error) => process.emitWarning(error)); // accepting a connection failed
  return {
    url: urlOf(where),
    async [Symbol.asyncDispose]() {
      closing.abort();
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The address that the server listens on. */
export function urlOf({ host, port }: Place): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Forms of web pages cannot send this type. */
function isJson({ headers }: IncomingMessage): boolean {
  const { 'content-type': type, 'content-length': length, 'transfer-encoding': coding } = headers;
  const isEmpty = coding === undefined && (length === undefined || length === '0');
  return type === undefined ? isEmpty : JSON_TYPE.test(type);
}

/** The body, or what is wrong with it. */
async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown> | string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= BODY_MAX_BYTES) chunks.push(chunk);
  }
  if (bytes > BODY_MAX_BYTES) return 'the body is too large: params may have 64 KiB';
  const body = parseJson(Buffer.concat(chunks).toString().trim() || '{}');
  if (body === undefined) return 'the body is not JSON';
  return isObject(body) ? body : 'the body must be an object, such as {"params": {}}';
}

/** The params, or what is wrong with them. */
function paramsIn({ params = {} }: Record<string, unknown>): object | string {
  if (!isObject(params)) return 'params must be an object';
  if (Buffer.byteLength(JSON.stringify(params)) > PARAMS_MAX_BYTES) return 'params exceed 64 KiB';
  return params;
}

function nameOf(path: string): string | undefined {
  const [, encoded] = INVOKE.exec(path) ?? [];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  send(response, status, JSON.stringify({ error: { message } }));
}

/** In the shape of the service's errors, which the page reads. */
function refuseStart(response: ServerResponse, status: number, message: string): void {
  send(response, status, JSON.stringify({ message }));
}

function send(response: ServerResponse, status: number, json: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(json);
}

function cannotListen({ code }: NodeJS.ErrnoException, { host, port }: Place): string {
  const place = `${host}:${port}`;
  if (code === 'EADDRINUSE') return `${place} is taken; choose another with --port`;
  return `cannot listen on ${place} (${code ?? 'unknown'})`;
}
