/**
 * Selects which messages the protocol log keeps, and how much of a long message. Reads only the
 * first bytes of a message. Pure.
 */
import type { Command } from '../../browser/cdp/command-policy.ts';
import { startsWith } from '../../browser/cdp/split.ts';
import { isSecret } from './redaction.ts';

/** Of one message. Ours: a screenshot has megabytes that nobody reads in a log. */
export const BODY_MAX_BYTES = 64 << 10;
/** How much of a longer message is kept. */
const HEAD_BYTES = 1 << 10;

/**
 * The purpose of the log: which page did what, and what went wrong there. proto/spec/sessions.md 7.
 */
const KEPT_DOMAINS: ReadonlySet<string> = new Set(['Page', 'Target', 'Inspector']);
const KEPT: ReadonlySet<string> = new Set([
  'Browser.downloadWillBegin',
  'Log.entryAdded',
  'Network.loadingFailed',
  'Network.loadingFinished',
  'Network.requestServedFromCache',
  'Network.requestWillBeSent',
  'Network.responseReceived',
  'Network.webSocketClosed',
  'Network.webSocketCreated',
  'Network.webSocketFrameError',
  'Runtime.consoleAPICalled',
  'Runtime.exceptionThrown',
]);
/** Events of the kept domains that carry bulk data. */
const DROPPED: ReadonlySet<string> = new Set([
  'Page.compilationCacheProduced',
  'Page.screencastFrame',
  'Target.receivedMessageFromTarget',
]);

const QUOTE = 0x22;
const MINUS = 0x2d;
const ANSWER = Buffer.from('{"id":');
const EVENT = Buffer.from('{"method":"');

/**
 * A command's params as JSON on one line, and its text; with `isCut`, both are truncated whatever
 * their length.
 */
export function commandText(
  { id, method }: Pick<Command, 'id' | 'method'>,
  { text, params }: Wire,
  isCut: boolean,
): { params: string; text: string } {
  if (!isCut && text.length <= BODY_MAX_BYTES) {
    // line breaks between values only: within a string a line break is \n
    return { params: params?.toString().replace(/[\r\n]/g, ' ') ?? '{}', text: text.toString() };
  }
  const cut = truncated(method, text);
  return { params: JSON.stringify(cut), text: JSON.stringify({ id, method, params: cut }) };
}

/** The method of an event; undefined for a response. */
export function methodOf(raw: Buffer): string | undefined {
  if (!startsWith(raw, EVENT)) return undefined;
  return raw.toString('latin1', EVENT.length, raw.indexOf(QUOTE, EVENT.length));
}

/** Whether events of that name are logged. */
export function isKept(method: string): boolean {
  if (KEPT.has(method)) return true;
  return KEPT_DOMAINS.has(method.slice(0, method.indexOf('.'))) && !DROPPED.has(method);
}

export function eventText(method: string, raw: Buffer): string {
  if (raw.length <= BODY_MAX_BYTES) return raw.toString();
  return JSON.stringify({ method, params: truncated(method, raw) });
}

export function answerText(method: string, id: number, raw: Buffer): string {
  if (raw.length <= BODY_MAX_BYTES) return raw.toString();
  return JSON.stringify({ id, result: truncated(method, raw) });
}

/** Replaces a body that is too long. Messages with secrets lose their beginning too. */
function truncated(method: string, raw: Buffer): Record<string, unknown> {
  const why = `${raw.length} bytes: a message of more than ${BODY_MAX_BYTES} is not kept whole`;
  if (isSecret(method)) return { truncated: why };
  return { truncated: why, head: raw.toString('utf8', 0, HEAD_BYTES) };
}

/** Chrome writes the id first, except in errors of a session that is gone. */
export function idOf(raw: Buffer): number {
  if (!startsWith(raw, ANSWER)) {
    if (raw.length > BODY_MAX_BYTES) return Number.NaN;
    return Number(/"id":(-?\d+)\}?(?:,|$)/.exec(raw.toString())?.[1]);
  }
  const isNegative = raw[ANSWER.length] === MINUS;
  let id = 0;
  for (let at = ANSWER.length + (isNegative ? 1 : 0); ; at += 1) {
    const digit = (raw[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return isNegative ? -id : id;
    id = 10 * id + digit;
  }
}

/** A command as received: the whole message, and its params. */
export type Wire = { text: Buffer; params: Buffer | undefined };
