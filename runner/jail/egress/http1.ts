/**
 * Heads of HTTP/1.1 messages as a proxy reads them (RFC 9112): strict with what a jail says,
 * patient with what a site says. None is passed on as it came, so who reads what was written anew
 * finds the same message in it as was found here. Text is latin1: a byte each. Pure.
 */
import { type Body, chunkedBody, NO_BODY, OPEN_ENDED, sizedBody } from './body.ts';
import { type Field, forwarded, saysClose, valuesOf } from './headers.ts';

export type RequestHead = {
  method: string;
  /** As it was asked for: a URL, the authority of a CONNECT, or a path. */
  target: string;
  /** `HTTP/1.0` or `HTTP/1.1`. */
  version: string;
  /** To be passed on; without Host, which the target says. */
  fields: Field[];
  body: Body;
  /** The client says no more after it. */
  isLast: boolean;
  /** What it says for the proxy. */
  authorization: string | undefined;
};

export type AnswerHead = {
  code: number;
  /** As it is passed on. */
  text: string;
  body: Body;
  /** The site takes nothing more on its connection. */
  isLast: boolean;
};

const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) (HTTP\/1\.[01])$/;
/** Any three digits that browsers take: some sites say 999. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t -~\x80-\xff]*))?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t -~\x80-\xff]*$/;
const SIZE = /^\d{1,15}$/;
const REQUEST_END = '\r\n\r\n';
const ANSWER_END = /\n\r?\n$/;
/** A value that goes on in the next line (RFC 9112 5.2): nobody writes that any more. */
const FOLD = /\r?\n[ \t]+/g;
const LENGTH = 'content-length';
const CODING = 'transfer-encoding';
const CHUNKED: Field = { name: 'Transfer-Encoding', key: CODING, value: 'chunked' };
/** The answer to an upgrade, which nobody asks for here. */
const SWITCHING = 101;
const [LF, CR] = [10, 13];

/** Gives how far the first head in a stream of bytes reaches; undefined while it has no end. */
export function headEnd(): (bytes: Uint8Array) => number | undefined {
  let isLineOver = false;
  return (bytes) => {
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === LF && isLineOver) return at + 1;
      if (byte === LF) isLineOver = true;
      else if (byte !== CR) isLineOver = false;
    }
    return undefined;
  };
}

/** Undefined for what is no request, or could be read in more than one way. */
export function requestHead(text: string): RequestHead | undefined {
  if (!text.endsWith(REQUEST_END)) return undefined;
  const [first = '', ...lines] = text.slice(0, -REQUEST_END.length).split('\r\n');
  const [, method, target, version] = REQUEST_LINE.exec(first) ?? [];
  const fields = lines.map(fieldOf).filter((field) => field !== undefined);
  const codings = valuesOf(fields, CODING);
  const sizes = valuesOf(fields, LENGTH);
  // with several, who is behind us might take the other one's word (RFC 9112 6.3, 11.2)
  const body = codings.length + sizes.length > 1 ? undefined : bodyOf(codings, sizes, NO_BODY);
  const isWhole = fields.length === lines.length && body !== undefined;
  if (!isWhole || !method || !target || !version) return undefined;
  const passed = forwarded(fields).filter(({ key }) => key !== 'host' && key !== LENGTH);
  // written anew: one that `Connection` lists would be dropped, and its body read as a request
  if (codings.length > 0) passed.push(CHUNKED);
  for (const value of sizes) passed.push({ name: 'Content-Length', key: LENGTH, value });
  const isLast = version === 'HTTP/1.0' || saysClose(fields);
  const [authorization] = valuesOf(fields, 'proxy-authorization');
  return { method, target, version, fields: passed, body, isLast, authorization };
}

/** `method`: of what it answers. Undefined for what is no answer. */
export function answerHead(text: string, method: string): AnswerHead | undefined {
  const [first = '', ...lines] = text.replace(FOLD, ' ').split(/\r?\n/);
  const [, minor, status, reason = ''] = STATUS_LINE.exec(first) ?? [];
  const code = Number(status);
  // what is no header is left out: then it means nothing to the client either
  const fields = lines.map(fieldOf).filter((field) => field !== undefined);
  // seen of sites that set it themselves behind a server that does
  const codings = [...new Set(valuesOf(fields, CODING).map((value) => value.toLowerCase()))];
  const sizes = codings.length > 0 ? [] : [...new Set(valuesOf(fields, LENGTH))];
  const framed = bodyOf(codings, sizes, OPEN_ENDED);
  const isAnswer = minor !== undefined && code !== SWITCHING && ANSWER_END.test(text);
  if (!isAnswer || framed === undefined) return undefined;
  const isBare = method === 'HEAD' || code < 200 || code === 204 || code === 304;
  const body = isBare ? NO_BODY : framed;
  const isLast = code >= 200 && (minor === '0' || saysClose(fields) || body.isOpenEnded);
  const written = [`HTTP/1.1 ${status} ${reason}`];
  for (const field of forwarded(fields)) {
    if (field.key !== LENGTH) written.push(lineOf(field));
  }
  if (codings.length > 0) written.push(lineOf(CHUNKED));
  for (const size of sizes) written.push(`Content-Length: ${size}`);
  if (isLast) written.push('Connection: close');
  return { code, text: `${written.join('\r\n')}\r\n\r\n`, body, isLast };
}

/** A header as a line, without its end. */
export function lineOf({ name, value }: Field): string {
  return `${name}: ${value}`;
}

function fieldOf(line: string): Field | undefined {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon));
  const value = line.slice(colon + 1);
  if (!NAME.test(name) || !VALUE.test(value)) return undefined;
  return { name, key: name.toLowerCase(), value: trimmed(value) };
}

/** Not trim(): a byte of a letter in UTF-8 may be a space to it. */
function trimmed(value: string): string {
  let [start, end] = [0, value.length];
  while (start < end && isBlank(value[start])) start += 1;
  while (end > start && isBlank(value[end - 1])) end -= 1;
  return value.slice(start, end);
}

function isBlank(char: string | undefined): boolean {
  return char === ' ' || char === '\t';
}

/** `silent`: what it is when nothing is said of it. Undefined when its end is not certain. */
function bodyOf(
  codings: readonly string[],
  sizes: readonly string[],
  silent: Body,
): Body | undefined {
  const [coding, size] = [codings[0], sizes[0]];
  if (codings.length > 1 || sizes.length > 1) return undefined;
  if (coding !== undefined) return coding.toLowerCase() === 'chunked' ? chunkedBody() : undefined;
  if (size === undefined) return silent;
  return SIZE.test(size) ? sizedBody(Number(size)) : undefined;
}
