/** Requests to the service. The cookie of the login is their credential. */
import { signal } from '@preact/signals';
import { setClock } from './clock.ts';
import { route } from './router.ts';
import { shareHeaders } from './share.ts';

/** Ours: an answer that takes longer is an error that the page shows. */
const TIMEOUT_MS = 30_000;
/** The same for files: 512 MiB by a slow line. */
const FILE_TIMEOUT_MS = 30 * 60_000;

/** An answer that is no success. `status` 0: no answer at all. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Who is logged in. undefined: not asked yet; null: nobody. */
export type Me = {
  /** Both null for an operator login, which sees every project. */
  projectId: string | null;
  projectName?: string | null;
  /** `keyId`: the public part of the API key; null for a login by a link of `tabern console`. */
  login?: { kind: 'key' | 'code' | 'operator'; keyId: string | null } | null;
  service?: { baseUrl: string };
};
export const me = signal<Me | null | undefined>(undefined);

/** Paths of the login itself and of the operator, of no project. */
const OF_NO_PROJECT = /^\/console\/api\/v1\/(?:me$|operator\/)/;
const OF_PROJECT = /^\/(?:v1|console\/api\/v1)\//;

export function isOperator(): boolean {
  return me.value?.login?.kind === 'operator';
}

/** The path for the project of the page's address: an operator login names it in each request. */
export function inProject(path: string): string {
  const { projectId } = route.value;
  const isNamed = isOperator() && projectId !== '';
  if (!isNamed || !OF_PROJECT.test(path) || OF_NO_PROJECT.test(path)) return path;
  return `/console/api/v1/as/${encodeURIComponent(projectId)}${path}`;
}

/** The address for clients, for commands that a person copies. */
export function baseUrl(): string {
  return me.value?.service?.baseUrl ?? location.origin;
}

/** A JSON body, a form with files, or a file. */
type Body = object | FormData | Blob;
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** GET, or POST with a body, of a path of this origin; returns the parsed answer. */
export function api<T>(path: string, body?: Body, signal?: AbortSignal): Promise<T> {
  return send<T>(body === undefined ? 'GET' : 'POST', path, body, signal);
}

/** The same with any method. */
export async function send<T>(
  method: Method,
  path: string,
  body?: Body,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await request(method, path, body, signal);
  if (answer.status === 401 && path !== '/console/login') me.value = null;
  if (!answer.ok) throw new ApiError(answer.status, await messageOf(answer));
  if (answer.status === 204) return undefined as T;
  const text = await answer.text();
  return (text === '' ? undefined : JSON.parse(text)) as T; // types.ts describes it
}

/** A path with the parameters that are set. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(set as [string, string][]).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** The sentence that a person reads about a failure. */
export function sentenceOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text === '' ? 'The request failed.' : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

async function request(
  method: Method,
  path: string,
  body?: Body,
  signal?: AbortSignal,
): Promise<Response> {
  const isFile = body instanceof FormData || body instanceof Blob;
  const late = AbortSignal.timeout(isFile ? FILE_TIMEOUT_MS : TIMEOUT_MS);
  const init: RequestInit = {
    method,
    cache: 'no-store',
    credentials: 'same-origin',
    headers: shareHeaders(),
    signal: signal ? AbortSignal.any([signal, late]) : late,
  };
  if (isFile) init.body = body;
  else if (body !== undefined) {
    init.headers = { ...init.headers, 'content-type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  try {
    const answer = await fetch(inProject(path), init);
    setClock(answer.headers.get('date'));
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, late.aborted ? 'no answer in time' : 'the service is not reachable');
  }
}

async function messageOf(answer: Response): Promise<string> {
  try {
    const { message } = (await answer.json()) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // a proxy in front may answer with a page of its own
  }
  return `the service answered ${answer.status}`;
}
