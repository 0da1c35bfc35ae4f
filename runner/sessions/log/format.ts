/**
 * Formats entries of the protocol log as one JSON SessionLog per line. Chrome's messages are not
 * parsed unless they may hold secrets: their params or result are copied as text. Pure.
 */
import { TAIL, TAIL_BYTES } from '../../browser/cdp/split.ts';
import type { Entry, Side } from './recorder.ts';
import { hasSecrets, mayTell, redacted, withoutHeaders } from './redaction.ts';

const ANSWER_HEAD = /^\{"id":-?\d+,"(result|error)":/;
const EVENT_HEAD = /^\{"method":"[^"]+","params":/;
/** Chrome's ids are 32 hex digits; clients may use others, such as `main`. */
const ID = /^[\w.-]{1,64}$/;

/** JSON of params or a result, and the message that held it. */
type Shown = { body: string; raw: string };

/** One line, without its line break. Content that an exploited Chrome nests too deep is omitted. */
export function lineOf(entry: Entry, sessionId: string, secrets: ReadonlySet<string>): string {
  try {
    return lineFrom(entry, sessionId, secrets);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const { method, pageId, request } = entry;
    const text = '{"params":{"truncated":"nested too deep"}}';
    return lineFrom({ method, pageId, request: { ...request, text } }, sessionId, secrets);
  }
}

function lineFrom(entry: Entry, sessionId: string, secretHeaders: ReadonlySet<string>): string {
  const { method, pageId, request, response } = entry;
  const asked = entry.params === undefined ? eventOf(entry, secretHeaders) : commandOf(entry);
  const answered = response && answerOf(method, response);
  const frame = idIn('frameId', asked, answered);
  const loader = idIn('loaderId', asked, answered);
  const { at } = response ?? request;
  return (
    `{"method":${JSON.stringify(method)},"pageId":${pageId},"sessionId":"${sessionId}",` +
    `"timestamp":${at},${frame}${loader}` +
    `"request":{"timestamp":${request.at},"params":${asked.body},"rawBody":${asked.raw}}` +
    (answered === undefined || response === undefined
      ? '}'
      : `,"response":{"timestamp":${response.at},"result":${answered.body},` +
        `"rawBody":${answered.raw}}}`)
  );
}

function commandOf({ method, request, params = '{}' }: Entry): Shown {
  if (!hasSecrets(method, 'request')) return { body: params, raw: JSON.stringify(request.text) };
  const shown = redacted(method, 'request', JSON.parse(params));
  return showing(request.text, { params: shown }, shown);
}

function eventOf({ method, request: { text } }: Entry, secretHeaders: ReadonlySet<string>): Shown {
  const body = bodyOf(text, EVENT_HEAD);
  if (body !== undefined && !mayTell(method, text, secretHeaders)) {
    return { body, raw: JSON.stringify(text) };
  }
  const { params = {} } = parsed(text);
  const shown = withoutHeaders(params, secretHeaders);
  return showing(text, { params: shown }, shown);
}

function answerOf(method: string, { text }: Side): Shown {
  const body = bodyOf(text, ANSWER_HEAD);
  if (body !== undefined && !hasSecrets(method, 'response')) {
    const isError = text.startsWith('error', text.indexOf(',') + 2);
    return { body: isError ? `{"error":${body}}` : body, raw: JSON.stringify(text) };
  }
  const { result, error } = parsed(text);
  if (error !== undefined) return showing(text, {}, { error });
  const shown = redacted(method, 'response', result) ?? result ?? {};
  return showing(text, { result: shown }, shown);
}

/** The message with some members replaced. */
function showing(text: string, members: Record<string, unknown>, shown: unknown): Shown {
  const raw = JSON.stringify({ ...parsed(text), ...members });
  return { body: JSON.stringify(shown), raw: JSON.stringify(raw) };
}

function bodyOf(text: string, head: RegExp): string | undefined {
  const start = head.exec(text)?.[0].length;
  if (start === undefined) return undefined;
  return text.slice(start, TAIL.test(text.slice(-TAIL_BYTES)) ? -TAIL_BYTES : -1);
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {}; // an exploited Chrome may write anything; the log need not show it
  }
}

/** `"frameId":"…",` if either message has that member: a quote inside a string is escaped. */
function idIn(name: 'frameId' | 'loaderId', asked: Shown, answered: Shown | undefined): string {
  const key = `"${name}":"`;
  for (const { body } of answered === undefined ? [asked] : [asked, answered]) {
    const start = body.indexOf(key) + key.length;
    const id = start < key.length ? '' : body.slice(start, body.indexOf('"', start));
    if (ID.test(id)) return `${key}${id}",`;
  }
  return '';
}
