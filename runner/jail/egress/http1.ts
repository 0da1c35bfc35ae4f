/**
 * Parses and writes heads of HTTP/1.1 messages for a proxy (RFC 9112): strict with clients in a
 * jail, tolerant with sites. No head is forwarded unchanged, so the receiver parses the same
 * message as this proxy did. Text is latin1: one character per byte. Pure.
 */

export type RequestHead = {
  method: string;
  /** As in the request: a URL, the authority of a CONNECT, or a path. */
  target: string;
  /** `HTTP/1.0` or `HTTP/1.1`. */
  version: string;
  /** Header lines to forward, without Host, which comes from the target. */
  lines: string[];
  body: Body;
  /** The client sends no further request. */
  isLast: boolean;
  /** The client's credentials for the proxy. */
  authorization: string | undefined;
};

type AnswerHead = {
  code: number;
  /** As forwarded. */
  text: string;
  body: Body;
  /** The site accepts no further request on its connection. */
  isLast: boolean;
};

/** The end of a message's body (RFC 9112 6 and 7.1), found while its bytes are forwarded. */
export type Body = {
  /** How many of these bytes belong to the body; undefined for an invalid body. */
  take(bytes: Uint8Array): number | undefined;
  /** The body is complete. */
  readonly isOver: boolean;
  /** The body ends with the connection. */
  readonly isOpenEnded: boolean;
};

/** A header field; `key` is its name in lower case. */
type Field = { name: string; key: string; value: string };

const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) (HTTP\/1\.[01])$/;
/** Any three digits that browsers accept: some sites send 999. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t -~\x80-\xff]*))?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t -~\x80-\xff]*$/;
const SIZE = /^\d{1,15}$/;
const REQUEST_END = '\r\n\r\n';
const ANSWER_END = /\n\r?\n$/;
/** A value continued on the next line (RFC 9112 5.2), which is obsolete. */
const FOLD = /\r?\n[ \t]+/g;
const LENGTH = 'content-length';
const CODING = 'transfer-encoding';
/** The response to an upgrade, which is never requested here. */
const SWITCHING = 101;
const [TAB, LF, CR, SPACE, SEMICOLON, DELETE] = [9, 10, 13, 32, 59, 127];
/** Hex digits of a chunk's size. Ours: the value still fits a number. */
const SIZE_DIGITS_MAX = 13;
/**
 * RFC 9110 7.6.1. `upgrade` too: WebSockets use CONNECT. `close` is reserved, because `Connection:
 * close` would list it. The length of a body is written anew.
 */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...['close', 'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization'],
  ...['proxy-connection', 'te', 'trailer', 'upgrade', CODING, LENGTH],
]);

export const NO_BODY: Body = { take: () => 0, isOver: true, isOpenEnded: false };
/** A response without a length. */
const OPEN_ENDED: Body = { take: ({ length }) => length, isOver: false, isOpenEnded: true };

/** Finds the end of the first head in a stream of bytes; undefined while it is incomplete. */
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

/** Undefined for an invalid request, or one that could be parsed in more than one way. */
export function requestHead(text: string): RequestHead | undefined {
  if (!text.endsWith(REQUEST_END)) return undefined;
  const [first = '', ...lines] = text.slice(0, -REQUEST_END.length).split('\r\n');
  const [, method, target, version] = REQUEST_LINE.exec(first) ?? [];
  const fields = fieldsOf(lines);
  const codings = valuesOf(fields, CODING);
  const sizes = valuesOf(fields, LENGTH);
  // with several, the receiver might use a different one (RFC 9112 6.3, 11.2)
  const body = codings.length + sizes.length > 1 ? undefined : bodyOf(codings, sizes, NO_BODY);
  const isWhole = fields.length === lines.length && body !== undefined;
  if (!isWhole || !method || !target || !version) return undefined;
  const others = fields.filter(({ key }) => key !== 'host');
  const isLast = version === 'HTTP/1.0' || saysClose(fields);
  const [authorization] = valuesOf(fields, 'proxy-authorization');
  const forwarded = linesOf(others, codings, sizes);
  return { method, target, version, lines: forwarded, body, isLast, authorization };
}

/** `method`: of the request. Undefined for an invalid response. */
export function answerHead(text: string, method: string): AnswerHead | undefined {
  const [first = '', ...lines] = text.replace(FOLD, ' ').split(/\r?\n/);
  const [, minor, status, reason = ''] = STATUS_LINE.exec(first) ?? [];
  const code = Number(status);
  // invalid header lines are dropped, so that the client does not interpret them either
  const fields = fieldsOf(lines);
  // some sites set it behind a server that sets it too
  const codings = [...new Set(valuesOf(fields, CODING).map((value) => value.toLowerCase()))];
  const sizes = codings.length > 0 ? [] : [...new Set(valuesOf(fields, LENGTH))];
  const framed = bodyOf(codings, sizes, OPEN_ENDED);
  const isAnswer = minor !== undefined && code !== SWITCHING && ANSWER_END.test(text);
  if (!isAnswer || framed === undefined) return undefined;
  const isBare = method === 'HEAD' || code < 200 || code === 204 || code === 304;
  const body = isBare ? NO_BODY : framed;
  const isLast = code >= 200 && (minor === '0' || saysClose(fields) || body.isOpenEnded);
  const written = [`HTTP/1.1 ${status} ${reason}`, ...linesOf(fields, codings, sizes)];
  if (isLast) written.push('Connection: close');
  return { code, text: `${written.join('\r\n')}\r\n\r\n`, body, isLast };
}

/**
 * The lines to forward: without hop-by-hop fields and those listed by `Connection`. The length is
 * written anew: one listed there would be dropped, and the body parsed as a request.
 */
function linesOf(
  fields: readonly Field[],
  codings: readonly string[],
  sizes: readonly string[],
): string[] {
  const listed = new Set(valuesOf(fields, 'connection').flatMap(listOf));
  const passed = fields.filter(({ key }) => !NOT_FORWARDED.has(key) && !listed.has(key));
  const lines = passed.map(({ name, value }) => `${name}: ${value}`);
  if (codings.length > 0) lines.push('Transfer-Encoding: chunked');
  for (const size of sizes) lines.push(`Content-Length: ${size}`);
  return lines;
}

/** The valid header lines. */
function fieldsOf(lines: readonly string[]): Field[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon));
    const value = line.slice(colon + 1);
    if (!NAME.test(name) || !VALUE.test(value)) return [];
    return { name, key: name.toLowerCase(), value: trimmed(value) };
  });
}

/** Not trim(): a byte of a UTF-8 character may count as a space. */
function trimmed(value: string): string {
  let [start, end] = [0, value.length];
  while (start < end && isBlank(value[start])) start += 1;
  while (end > start && isBlank(value[end - 1])) end -= 1;
  return value.slice(start, end);
}

function isBlank(char: string | undefined): boolean {
  return char === ' ' || char === '\t';
}

/** Whether the sender closes the connection after this message. */
function saysClose(fields: readonly Field[]): boolean {
  const said = [...valuesOf(fields, 'connection'), ...valuesOf(fields, 'proxy-connection')];
  return said.some((value) => listOf(value).includes('close'));
}

function valuesOf(fields: readonly Field[], key: string): string[] {
  return fields.filter((field) => field.key === key).map(({ value }) => value);
}

function listOf(value: string): string[] {
  return value.split(',').map((one) => one.trim().toLowerCase());
}

/** `silent`: the body when neither header is present. Undefined when its end is ambiguous. */
function bodyOf(
  codings: readonly string[],
  sizes: readonly string[],
  silent: Body,
): Body | undefined {
  const [coding, size] = [codings[0], sizes[0]];
  if (codings.length > 1 || sizes.length > 1) return undefined;
  if (coding !== undefined) {
    return coding.toLowerCase() === 'chunked' ? new ChunkedBody() : undefined;
  }
  if (size === undefined) return silent;
  return SIZE.test(size) ? sizedBody(Number(size)) : undefined;
}

export function sizedBody(size: number): Body {
  let left = size;
  return {
    take({ length }) {
      const taken = Math.min(left, length);
      left -= taken;
      return taken;
    },
    get isOver() {
      return left === 0;
    },
    isOpenEnded: false,
  };
}

type Part = 'size' | 'extension' | 'size LF' | 'CR' | 'LF' | 'line' | 'in line' | 'line LF' | 'end';

/** The part after a CR, an LF or another byte of text; without one that byte is invalid. */
const NEXT: Record<
  Exclude<Part, 'size' | 'size LF'>,
  { cr?: Part; lf?: Part | 'over'; text?: Part }
> = {
  extension: { cr: 'size LF', text: 'extension' },
  CR: { cr: 'LF' },
  LF: { lf: 'size' },
  line: { cr: 'end', text: 'in line' },
  'in line': { cr: 'line LF', text: 'in line' },
  'line LF': { lf: 'line' },
  end: { lf: 'over' },
};

/**
 * size [extension] CRLF, bytes CRLF; ...; 0 CRLF, trailers, CRLF. Every line must end with CRLF:
 * where one parser accepts a lone LF and the next does not, a request can be smuggled in a body.
 */
export class ChunkedBody implements Body {
  readonly isOpenEnded = false;
  #part: Part | 'over' = 'size';
  #size = 0;
  #digits = 0;
  #left = 0;

  get isOver(): boolean {
    return this.#part === 'over';
  }

  take(bytes: Uint8Array): number | undefined {
    let at = 0;
    while (at < bytes.length && this.#part !== 'over') {
      const taken = Math.min(this.#left, bytes.length - at);
      this.#left -= taken;
      at += taken;
      if (taken > 0) continue;
      const next = this.#after(this.#part, bytes[at] ?? 0);
      if (next === undefined) return undefined;
      this.#part = next;
      at += 1;
    }
    return at;
  }

  /** The part after that byte; undefined when the byte is invalid. */
  #after(part: Part, byte: number): Part | 'over' | undefined {
    if (part === 'size') return this.#inSize(byte);
    if (part === 'size LF') return byte === LF ? this.#begin() : undefined;
    const { cr, lf, text } = NEXT[part];
    if (byte === CR) return cr;
    if (byte === LF) return lf;
    return byte === TAB || (byte >= SPACE && byte !== DELETE) ? text : undefined;
  }

  #inSize(byte: number): Part | undefined {
    const digit = Number.parseInt(String.fromCharCode(byte), 16);
    if (!Number.isNaN(digit)) {
      this.#digits += 1;
      this.#size = this.#size * 16 + digit;
      return this.#digits > SIZE_DIGITS_MAX ? undefined : 'size';
    }
    if (this.#digits === 0) return undefined;
    if (byte === CR) return 'size LF';
    return byte === SPACE || byte === TAB || byte === SEMICOLON ? 'extension' : undefined;
  }

  #begin(): Part {
    const isLast = this.#size === 0;
    this.#left = this.#size;
    this.#size = 0;
    this.#digits = 0;
    return isLast ? 'line' : 'CR';
  }
}
