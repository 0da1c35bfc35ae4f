/**
 * The HTTP client of the commands: JSON, with the API key in a header. Redirects are not followed,
 * since the key would be sent along. Errors have the message of the service and never contain the
 * key.
 */
import { pause } from '../../proto/common/pause.ts';
import { retry } from '../../proto/common/retry.ts';
import { plain, type Stream, type Style, styled, tenantText } from '../../proto/terminal/text.ts';
import { CliError, httpUrl } from './config.ts';

/** Of one request, including its response. Ours: an upload of 25 MB on a slow line. */
const REQUEST_TIMEOUT_MS = 120_000;
/**
 * While polling: this many consecutive failures are tolerated, as during a restart of the service.
 * Ours.
 */
const POLL_FAILURES_MAX = 10;
/** The delay grows during a restart: ten failures take twelve seconds. Ours. */
const POLLS_AFTER_FAILURE = 4;

export type Json = Readonly<Record<string, unknown>>;
/** One line of an invocation's or build's log. */
export type LogLine = { message: string; timestamp: number; level?: string };
export type Api = ReturnType<typeof openApi>;

/** A response that is not 2xx; the message is the service's. */
export class ApiError extends CliError {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

export function openApi(service: { baseUrl: string; apiKey: string; pollMs: number }) {
  const { baseUrl, apiKey, pollMs } = service;
  const failedMs = pollMs * POLLS_AFTER_FAILURE;
  const outage = {
    firstMs: failedMs,
    maxMs: failedMs,
    limitMs: failedMs * POLL_FAILURES_MAX,
    isRetryable: isOutage,
  };

  async function request(method: string, path: string, init: RequestInit = {}): Promise<Json> {
    const headers = new Headers(init.headers);
    headers.set('x-svc-api-key', apiKey);
    headers.set('accept', 'application/json');
    const late = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const signal = init.signal ? AbortSignal.any([init.signal, late]) : late;
    return read(await reach(baseUrl, path, { ...init, method, headers, signal }));
  }

  function send(method: string, path: string, body: Json): Promise<Json> {
    const headers = { 'content-type': 'application/json' };
    return request(method, path, { body: JSON.stringify(body), headers });
  }

  const get = (path: string, signal: AbortSignal | null = null) => request('GET', path, { signal });
  return {
    get,
    /** An object is sent as JSON, a form as multipart. */
    post: (path: string, body: Json | FormData): Promise<Json> =>
      body instanceof FormData ? request('POST', path, { body }) : send('POST', path, body),
    patch: (path: string, body: Json) => send('PATCH', path, body),
    put: (path: string) => request('PUT', path),
    remove: (path: string) => request('DELETE', path),
    /**
     * Polls a build or an invocation until its end, across short outages of the service. `onAnswer`
     * is called after each response, so a log that it reads after the last one is complete.
     */
    async poll(path: string, onAnswer?: () => Promise<void>): Promise<Json> {
      for (;;) {
        const answer = await retry(async () => {
          const latest = await get(path);
          await onAnswer?.();
          return latest;
        }, outage);
        if (answer['status'] !== 'PENDING' && answer['status'] !== 'RUNNING') return answer;
        await pause(pollMs, undefined);
      }
    },
  };
}

/** Polls as Api.poll, and gives each new line of the log to `print`. */
export async function follow(
  api: Api,
  path: string,
  print: (line: LogLine) => void,
): Promise<Json> {
  let printed = 0;
  return api.poll(path, async () => {
    const lines = logLines(await api.get(`${path}/logs`));
    for (const line of lines.slice(printed)) print(line);
    printed = Math.max(printed, lines.length);
  });
}

/**
 * A request to a signed URL of the service: without the key, which the URL replaces and another
 * host must not receive.
 */
export async function transfer(url: string, init: RequestInit): Promise<Response> {
  const parsed = httpUrl(url);
  if (!parsed) {
    throw new ApiError(0, 'the service answered with a URL that is none; check TABERN_BASE_URL');
  }
  const answer = await reach(parsed.origin, parsed.pathname + parsed.search, init);
  if (!answer.ok) await read(answer); // throws the service's error
  return answer;
}

/** The lines in the response of a `logs` route. */
export function logLines({ logs }: Json): LogLine[] {
  return Array.isArray(logs) ? (logs as LogLine[]) : [];
}

/** A map: the level is a text of the tenant, such as `constructor`. */
const LEVELS: ReadonlyMap<string, Style> = new Map([
  ['warn', 'yellow'],
  ['error', 'red'],
]);

/** 12:53:37.151 warn the message. */
export function logText(
  { message, timestamp, level = 'log' }: LogLine,
  stream: Stream = process.stdout,
): string {
  const time = new Date(timestamp).toISOString().slice(11, 23);
  const style = LEVELS.get(level);
  const shown = style === undefined ? plain(level) : styled(style, level, stream);
  return `${time} ${shown} ${tenantText(message, stream).replaceAll('\n', '\n  ')}`;
}

/** `build failed: CODE: message`, from the cause of a build or an invocation, with its stack. */
export function failureText(noun: string, { cause }: Json): string {
  const stream = process.stderr;
  const { code = 'unknown' } = (cause ?? {}) as Json;
  const error = errorText((cause ?? {}) as Json, stream);
  const title = styled('red', `${noun} failed: ${plain(code)}`, stream);
  return error === '' ? title : `${title}: ${error}`;
}

/** The name and message of an error, or its stack, which begins with them. */
export function errorText({ name, message, stack }: Json, stream: Stream): string {
  const isText = (part: unknown) => typeof part === 'string' && part !== '';
  const first = [name, message].filter(isText).join(': ');
  const all = [first, stack].filter(isText);
  const text = String(stack ?? '').includes(String(message)) ? stack : all.join('\n');
  return tenantText(text, stream);
}

/** Whether node's TLS refused the certificate. */
function isUntrusted(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return /SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)/.test(String(code));
}

/** Throws ApiError when there is no answer. Redirects are answers: elsewhere would get the key. */
export async function reach(baseUrl: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(baseUrl + path, { ...init, redirect: 'manual' });
  } catch (error) {
    const isLate = (error as Error).name === 'TimeoutError';
    const reason = isLate ? 'no answer in time' : connectionError(error);
    const advice = isUntrusted(error)
      ? 'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to its file'
      : 'is the service running?';
    throw new ApiError(0, `cannot reach ${baseUrl} (${reason}); ${advice}`);
  }
}

/** fetch reports only "fetch failed"; the code, such as ECONNREFUSED, is in the cause. */
export function connectionError(error: unknown): string {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code ?? 'no connection';
}

async function read(answer: Response): Promise<Json> {
  const { status, ok } = answer;
  if (status >= 300 && status < 400) {
    throw new ApiError(status, 'the service answered with a redirect; check TABERN_BASE_URL');
  }
  const text = await answer.text();
  if (status === 204) return {};
  const json = parseJson(text);
  if (!ok) {
    const { message, error } = (isObject(json) ? json : {}) as Json;
    const said = plain(message ?? error ?? answer.statusText);
    throw new ApiError(status, `${status} ${said}${hintOf(status, answer.url)}`);
  }
  if (typeof json !== 'object' || json === null) {
    throw new ApiError(0, 'the answer is not JSON; check that TABERN_BASE_URL is the service');
  }
  return json as Json; // or a list, as of sessions
}

/** What a person checks first: the service and the project that the command reached. */
function hintOf(status: number, url: string): string {
  const { origin } = new URL(url);
  if (status !== 401 && status !== 404) return '';
  return ` The service is ${origin}; there, \`tabern keys list\` shows each key and its project.`;
}

/** The value of JSON text; undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Errors that a client sees while the service restarts. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.statusCode === 0 || error.statusCode === 429 || error.statusCode >= 500;
}
