/**
 * Heads of HTTP/1.1 messages as a proxy reads them (RFC 9112): strict with what a jail says,
 * patient with what a site says. None is passed on as it came, so who reads what was written anew
 * finds the same message in it as was found here. Text is latin1: a byte each. Pure.
 */

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

/**
 * Where the body of an HTTP/1.1 message ends (RFC 9112 6 and 7.1), told from its bytes as they
 * pass: nothing of it is kept. Pure.
 */

export type Body = {
  /** How many of these bytes are of the body; undefined for what is no body. */
  take(bytes: Uint8Array): number | undefined;
  /** All of it has passed. */
  readonly isOver: boolean;
  /** The end of the connection is its end. */
  readonly isOpenEnded: boolean;
};

export const NO_BODY: Body = { take: () => 0, isOver: true, isOpenEnded: false };

/** Of an answer that does not say how long it is. */
export const OPEN_ENDED: Body = {
  take: ({ length }) => length,
  isOver: false,
  isOpenEnded: true,
};

/** Hex digits of a chunk's size. Ours: a number still holds what they say. */
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
 * size [extension] CRLF, bytes CRLF; ...; 0 CRLF, trailers, CRLF. Every line ends with CR and LF
 * together: where one reader takes a lone LF for an end and the next does not, a request can be
 * hidden in a body.
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

  /** What comes after that byte in that part; undefined when it may not stand there. */
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

/**
 * Header fields as a proxy passes them on: in order, as spelled, without those that concern one hop
 * only. Pure.
 */

export type Field = {
  /** As spelled. */
  name: string;
  /** The same in lower case. */
  key: string;
  value: string;
};

/**
 * RFC 9110 7.6.1. `upgrade` too: a WebSocket goes through CONNECT. `close` is reserved, for it
 * would be listed by `Connection: close`.
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

/** Those that `Connection` lists are dropped too. */
export function forwarded(fields: readonly Field[]): Field[] {
  const listed = new Set(valuesOf(fields, 'connection').flatMap(listOf));
  return fields.filter(({ key }) => !HOP_BY_HOP.has(key) && !listed.has(key));
}

/** Whether who said that ends the connection after this message. */
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
