/**
 * The client of the commands: JSON over HTTP with the key in a header. Redirects are not followed,
 * since the key would be sent along. Errors are printed as the service words them; the key is never
 * printed.
 */
import { CliError } from './config.ts';

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

export type Api = {
  get(path: string, signal?: AbortSignal): Promise<Json>;
  /** An object is sent as JSON, a form as multipart. */
  post(path: string, body: Json | FormData): Promise<Json>;
  /** Without a body. */
  put(path: string): Promise<Json>;
  /** DELETE, which has no response body. */
  remove(path: string): Promise<void>;
  /** Polls every pollMs until `isOver`, tolerating short outages of the service. */
  poll(path: string, isOver: (answer: Json) => Promise<boolean> | boolean): Promise<Json>;
};

/** A response that is not 2xx; the message is the service's. */
export class ApiError extends CliError {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

export function openApi(service: { baseUrl: string; apiKey: string; pollMs: number }): Api {
  type More = { body?: Json | FormData; signal?: AbortSignal | undefined };
  async function request(method: string, path: string, more: More = {}): Promise<Json> {
    const { body, signal } = more;
    const headers: Record<string, string> = {
      'x-svc-api-key': service.apiKey,
      accept: 'application/json',
    };
    const isForm = body instanceof FormData;
    if (body !== undefined && !isForm) headers['content-type'] = 'application/json';
    const late = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const answer = await reach(service.baseUrl, path, {
      method,
      headers,
      redirect: 'manual',
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    return read(answer);
  }

  const get = (path: string, signal?: AbortSignal) => request('GET', path, { signal });
  return {
    get,
    post: (path, body) => request('POST', path, { body }),
    put: (path) => request('PUT', path),
    async remove(path) {
      await request('DELETE', path);
    },
    async poll(path, isOver) {
      for (let failures = 0; ; ) {
        let pauseMs = service.pollMs;
        try {
          const answer = await get(path);
          failures = 0;
          if (await isOver(answer)) return answer;
        } catch (error) {
          failures += 1;
          pauseMs *= POLLS_AFTER_FAILURE;
          if (!isPassing(error) || failures > POLL_FAILURES_MAX) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    },
  };
}

/**
 * A request to a signed URL of the service: without the key, which the URL replaces and another
 * host must not receive.
 */
export async function transfer(url: string, init: RequestInit): Promise<Response> {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new ApiError(0, 'the service answered with a URL that is none; check TABERN_BASE_URL');
  }
  const { origin, pathname, search } = new URL(url);
  const answer = await reach(origin, pathname + search, { ...init, redirect: 'manual' });
  if (!answer.ok) await read(answer); // throws the service's error
  return answer;
}

/** A log's lines, validated. */
export function logLines(answer: Json): LogLine[] {
  const logs = answer['logs'];
  return Array.isArray(logs) ? (logs as LogLine[]) : [];
}

/**
 * 12:53:37.151 warn the message. Text of a page may be in it: control characters for the terminal
 * are removed.
 */
export function logText({ message, timestamp, level }: LogLine): string {
  const time = new Date(timestamp).toISOString().slice(11, 23);
  return `${time} ${level ?? 'log'} ${plain(message)}`;
}

/** The text without control characters, except tabs. */
export function plain(text: unknown): string {
  return String(text).replace(/[^\P{Cc}\t]/gu, '\u{fffd}');
}

async function reach(baseUrl: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(baseUrl + path, init);
  } catch (error) {
    // fetch reports only "fetch failed"; the reason is in its cause.
    const { cause, name } = error as Error & { cause?: { code?: string } };
    const why = name === 'TimeoutError' ? 'no answer in time' : (cause?.code ?? 'no connection');
    throw new ApiError(0, `cannot reach ${baseUrl} (${why}); is the service running?`);
  }
}

async function read(answer: Response): Promise<Json> {
  if (answer.status >= 300 && answer.status < 400) {
    throw new ApiError(
      answer.status,
      'the service answered with a redirect; check TABERN_BASE_URL',
    );
  }
  const text = await answer.text();
  if (answer.status === 204) return {};
  const json = parsed(text);
  if (!answer.ok) {
    const said = json?.['message'] ?? json?.['error'] ?? answer.statusText;
    throw new ApiError(answer.status, `${answer.status} ${plain(said)}`);
  }
  if (!json) {
    throw new ApiError(0, 'the answer is not JSON; check that TABERN_BASE_URL is the service');
  }
  return json;
}

function parsed(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Errors that a client sees while the service restarts. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.statusCode === 0 || error.statusCode === 429 || error.statusCode >= 500;
}
