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
  /** To be forwarded; without Host, which comes from the target. */
  fields: Field[];
  body: Body;
  /** The client sends no further request. */
  isLast: boolean;
  /** The client's credentials for the proxy. */
  authorization: string | undefined;
};

export type AnswerHead = {
  code: number;
  /** As forwarded. */
  text: string;
  body: Body;
  /** The site accepts no further request on its connection. */
  isLast: boolean;
};

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
const CHUNKED: Field = { name: 'Transfer-Encoding', key: CODING, value: 'chunked' };
/** The response to an upgrade, which is never requested here. */
const SWITCHING = 101;
const [LF, CR] = [10, 13];

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
  const fields = lines.map(fieldOf).filter((field) => field !== undefined);
  const codings = valuesOf(fields, CODING);
  const sizes = valuesOf(fields, LENGTH);
  // with several, the receiver might use a different one (RFC 9112 6.3, 11.2)
  const body = codings.length + sizes.length > 1 ? undefined : bodyOf(codings, sizes, NO_BODY);
  const isWhole = fields.length === lines.length && body !== undefined;
  if (!isWhole || !method || !target || !version) return undefined;
  const passed = forwarded(fields).filter(({ key }) => key !== 'host' && key !== LENGTH);
  // written anew: one listed by `Connection` would be dropped, and the body parsed as a request
  if (codings.length > 0) passed.push(CHUNKED);
  for (const value of sizes) passed.push({ name: 'Content-Length', key: LENGTH, value });
  const isLast = version === 'HTTP/1.0' || saysClose(fields);
  const [authorization] = valuesOf(fields, 'proxy-authorization');
  return { method, target, version, fields: passed, body, isLast, authorization };
}

/** `method`: of the request. Undefined for an invalid response. */
export function answerHead(text: string, method: string): AnswerHead | undefined {
  const [first = '', ...lines] = text.replace(FOLD, ' ').split(/\r?\n/);
  const [, minor, status, reason = ''] = STATUS_LINE.exec(first) ?? [];
  const code = Number(status);
  // invalid header lines are dropped, so that the client does not interpret them either
  const fields = lines.map(fieldOf).filter((field) => field !== undefined);
  // some sites set it behind a server that sets it too
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

/** A header as a line, without its line break. */
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

/** `silent`: the body when neither header is present. Undefined when its end is ambiguous. */
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

/**
 * Finds the end of an HTTP/1.1 message's body (RFC 9112 6 and 7.1) while its bytes are forwarded;
 * nothing is buffered. Pure.
 */

export type Body = {
  /** How many of these bytes belong to the body; undefined for an invalid body. */
  take(bytes: Uint8Array): number | undefined;
  /** The body is complete. */
  readonly isOver: boolean;
  /** The body ends with the connection. */
  readonly isOpenEnded: boolean;
};

export const NO_BODY: Body = { take: () => 0, isOver: true, isOpenEnded: false };

/** A response without a length. */
export const OPEN_ENDED: Body = {
  take: ({ length }) => length,
  isOver: false,
  isOpenEnded: true,
};

/** Hex digits of a chunk's size. Ours: the value still fits a number. */
const SIZE_DIGITS_MAX = 13;
const [TAB, SPACE, DELETE] = [9, 32, 127];

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

/**
 * size [extension] CRLF, bytes CRLF; ...; 0 CRLF, trailers, CRLF. Every line must end with CRLF:
 * where one parser accepts a lone LF and the next does not, a request can be smuggled in a body.
 */
export function chunkedBody(): Body {
  return new ChunkedBody();
}

type Part = 'size' | 'extension' | 'size LF' | 'CR' | 'LF' | 'line' | 'in line' | 'line LF' | 'end';

class ChunkedBody implements Body {
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

  /** The state after that byte; undefined when the byte is invalid. */
  #after(part: Part, byte: number): Part | 'over' | undefined {
    switch (part) {
      case 'size':
        return this.#inSize(byte);
      case 'extension':
        if (byte === CR) return 'size LF';
        return isText(byte) ? 'extension' : undefined;
      case 'size LF':
        return byte === LF ? this.#begin() : undefined;
      case 'CR':
        return byte === CR ? 'LF' : undefined;
      case 'LF':
        return byte === LF ? 'size' : undefined;
      case 'line':
        if (byte === CR) return 'end';
        return isText(byte) ? 'in line' : undefined;
      case 'in line':
        if (byte === CR) return 'line LF';
        return isText(byte) ? 'in line' : undefined;
      case 'line LF':
        return byte === LF ? 'line' : undefined;
      case 'end':
        return byte === LF ? 'over' : undefined;
    }
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
    return byte === SPACE || byte === TAB || byte === 0x3b ? 'extension' : undefined;
  }

  #begin(): Part {
    const isLast = this.#size === 0;
    this.#left = this.#size;
    this.#size = 0;
    this.#digits = 0;
    return isLast ? 'line' : 'CR';
  }
}

function isText(byte: number): boolean {
  return byte === TAB || (byte >= SPACE && byte !== DELETE);
}

/** Header fields to forward: in order, as spelled, without hop-by-hop fields. Pure. */

export type Field = {
  /** As spelled. */
  name: string;
  /** In lower case. */
  key: string;
  value: string;
};

/**
 * RFC 9110 7.6.1. `upgrade` too: WebSockets use CONNECT. `close` is reserved, because `Connection:
 * close` would list it.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'close',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Fields listed by `Connection` are dropped too. */
export function forwarded(fields: readonly Field[]): Field[] {
  const listed = new Set(valuesOf(fields, 'connection').flatMap(listOf));
  return fields.filter(({ key }) => !HOP_BY_HOP.has(key) && !listed.has(key));
}

/** Whether the sender closes the connection after this message. */
export function saysClose(fields: readonly Field[]): boolean {
  const said = [...valuesOf(fields, 'connection'), ...valuesOf(fields, 'proxy-connection')];
  return said.some((value) => listOf(value).includes('close'));
}

export function valuesOf(fields: readonly Field[], key: string): string[] {
  return fields.filter((field) => field.key === key).map(({ value }) => value);
}

function listOf(value: string): string[] {
  return value.split(',').map((one) => one.trim().toLowerCase());
}
