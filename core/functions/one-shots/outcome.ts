/**
 * The outcome of a one-shot: its head and content, or the Fault for its caller. The result was
 * written in a tenant's process, so it may be any JSON: it is a text, of which the head alone is
 * parsed, within its limit, and each member is checked.
 */
import {
  type FailureKind,
  HEAD_MAX_CHARS,
  type Response,
  type Seen,
} from '../../../proto/one-shots/messages.ts';
import { Fault, invalidField, type Reason } from '../../../proto/rpc/errors.ts';
import type { InvocationCause, InvocationRow } from '../../store/types/invocations.ts';

export type OneShot = {
  sessionId: string;
  page: Seen;
  contentType: string;
  content: string;
  /** Of a fetch. */
  response: Response;
};

/** In characters. Ours: the sentence and a selector. */
const MESSAGE_MAX_CHARS = 2_000;
const NAME_MAX_CHARS = 256;
const TITLE_MAX_CHARS = 1_000;
const URL_MAX_CHARS = 64 << 10;

const FAILURES: Readonly<Record<Exclude<FailureKind, 'field'>, Reason>> = {
  refused: 'ADDRESS_REFUSED',
  unreachable: 'PAGE_UNREACHABLE',
  timeout: 'PAGE_TIMEOUT',
  large: 'PAGE_TOO_LARGE',
};

/** Of an ended invocation. Throws the Fault of its failure. */
export function oneShotOf({ sessionId, results, cause, startedAt }: InvocationRow): OneShot {
  if (cause !== null) throw faultOf(JSON.parse(cause), startedAt !== null);
  // other code of the project may have answered: one text is parsed, and no tree of values
  if (!results?.startsWith('"')) throw invalidResult();
  const text: unknown = JSON.parse(results);
  const end = typeof text === 'string' ? text.indexOf('\n') : -1;
  if (typeof text !== 'string' || end < 0 || end > HEAD_MAX_CHARS) throw invalidResult();
  const head = record(parsed(text.slice(0, end)));
  const page = pageOf(record(head['page']));
  if (head['failure'] !== undefined) throw failureOf(record(head['failure']), page);
  const contentType = words(head['contentType'], NAME_MAX_CHARS);
  const response = responseOf(record(head['response'] ?? {}));
  return { sessionId, page, contentType, content: text.slice(end + 1), response };
}

function failureOf(failure: Record<string, unknown>, page: Seen): Fault {
  const message = words(failure['message'], MESSAGE_MAX_CHARS);
  const { kind, field } = failure;
  if (kind === 'field') return invalidField(words(field, 64), message);
  if (typeof kind !== 'string' || !Object.hasOwn(FAILURES, kind)) return invalidResult();
  const reason = FAILURES[kind as keyof typeof FAILURES];
  return new Fault(reason, kind === 'timeout' ? `${message}${soFar(page)}` : message);
}

/** What was seen until the time was over. */
function soFar({ url, title, status }: Seen): string {
  const facts = [
    `address ${url}`,
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(title === '' ? [] : [`title ${JSON.stringify(title)}`]),
  ];
  return `; seen so far: ${facts.join(', ')}.`;
}

/** Of an invocation that has no answer. */
function faultOf({ code, message }: InvocationCause, hasStarted: boolean): Fault {
  if (!hasStarted) return new Fault('NO_RUNNER', 'No runner was free in time. Try again.');
  switch (code) {
    case 'TIMED_OUT':
      return new Fault('PAGE_TIMEOUT', 'The page was not ready in time.');
    case 'WORKLOAD_ERROR':
      return new Fault(
        'PAGE_UNREACHABLE',
        `The page failed: ${words(message, MESSAGE_MAX_CHARS)}.`,
      );
    case 'INTERNAL_ERROR':
      return new Fault('BROWSER_FAILED', 'The browser was lost or did not start. Try again.');
  }
}

function pageOf({ url, title, status }: Record<string, unknown>): Seen {
  const page = { url: words(url, URL_MAX_CHARS), title: words(title, TITLE_MAX_CHARS) };
  return { ...page, status: statusOf(status) };
}

/** Of an answer that has none: status 0. */
function responseOf({ status, encoding, headers }: Record<string, unknown>): Response {
  const texts = Object.entries(Object(headers)).map(([name, value]) => [
    words(name, NAME_MAX_CHARS),
    words(value, MESSAGE_MAX_CHARS),
  ]);
  return {
    status: statusOf(status) ?? 0,
    encoding: words(encoding, NAME_MAX_CHARS),
    headers: Object.fromEntries(texts),
  };
}

function statusOf(status: unknown): number | undefined {
  const isStatus = Number.isInteger(status) && Number(status) >= 100 && Number(status) <= 999;
  return isStatus ? Number(status) : undefined;
}

/** Without control characters, and cut. */
function words(value: unknown, max: number): string {
  return String(typeof value === 'string' ? value : '')
    .slice(0, max)
    .replace(/\p{Cc}/gu, ' ');
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw invalidResult();
  }
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw invalidResult();
}

/** Only other code of the project, in the same process, can cause it. */
function invalidResult(): Fault {
  return new Fault('PAGE_UNREACHABLE', "The function's process returned an invalid answer.");
}
