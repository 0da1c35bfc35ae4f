/**
 * Scans the structure of JSON: the positions of members, without creating objects. A message of 16
 * MiB costs tens of milliseconds, whatever it contains; JSON.parse takes seconds for one with many
 * members. By default the scanner accepts what both JSON.parse and Chrome's own parser accept, and
 * reports all else with Chrome's error messages. RFC 8259. Pure.
 */

/** The nesting limit of Chrome's parser. */
const DEPTH_MAX = 300;
/** A number with fewer exponent digits and fewer digits is finite. */
const EXPONENT_DIGITS = 3;
const DIGITS = 300;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const [LITTLE_E, BIG_E, LITTLE_U] = [0x65, 0x45, 0x75];
const FIRST_PRINTABLE = 0x20;
/** Bytes of \uXXXX. */
const UNICODE_ESCAPE = 6;

/** By the first byte. */
const LITERALS: ReadonlyMap<number | undefined, Buffer> = new Map(
  ['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)]),
);
const ESCAPED = new Set(Buffer.from('"\\/bfnrt'));

/** Invalid JSON. The message is Chrome's. */
export class JsonError extends Error {
  override readonly name = 'JsonError';

  constructor(what: string, position: number) {
    super(`JSON: ${what} at position ${position}`);
  }
}

class TooDeep extends JsonError {}

export type ScanOptions = {
  /** Called for each member of the outermost object; ends are exclusive. */
  onMember?(key: number, keyEnd: number, value: number, valueEnd: number): void;
  /** Numbers, strings, literals, arrays and objects; unlimited by default. */
  valuesMax?: number;
  /** Levels of arrays and objects; by default Chrome's limit alone. */
  levelsMax?: number;
  /** Accepts numbers that are no finite double, as JSON.parse does and Chrome does not. */
  isOverflowAllowed?: boolean;
};

export type JsonProblem = 'syntax' | 'depth';

/** Undefined for JSON of at most `levelsMax` levels of arrays and objects. */
export function jsonProblem(text: string, levelsMax: number): JsonProblem | undefined {
  try {
    new JsonScan(Buffer.from(text), { levelsMax, isOverflowAllowed: true });
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error instanceof TooDeep ? 'depth' : 'syntax';
    throw error;
  }
}

export class JsonScan {
  readonly #bytes: Buffer;
  readonly #options: ScanOptions;
  readonly #valuesMax: number;
  readonly #levelsMax: number;
  /** Numbers, strings, literals, arrays and objects. */
  values = 0;
  /** Whether the outermost value is an object. */
  isObject = false;

  /** `bytes` must be valid UTF-8. Throws a JsonError when invalid, or above a limit. */
  constructor(bytes: Buffer, options: ScanOptions = {}) {
    const { valuesMax = Number.POSITIVE_INFINITY, levelsMax = DEPTH_MAX + 1 } = options;
    this.#bytes = bytes;
    this.#options = options;
    this.#valuesMax = valuesMax;
    this.#levelsMax = levelsMax;
    const end = this.#blank(this.#value(0, 0));
    if (end < bytes.length) throw new JsonError('unprocessed input remains', end);
  }

  #blank(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    for (; ; at += 1) {
      const byte = bytes[at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    }
  }

  /** Returns the end of the value that begins after `from`. */
  #value(from: number, depth: number): number {
    if (depth > DEPTH_MAX) throw new TooDeep('stack limit exceeded', from);
    const at = this.#blank(from);
    this.values += 1;
    if (this.values > this.#valuesMax) throw new JsonError('too many values', at);
    const byte = this.#bytes[at];
    switch (byte) {
      case QUOTE:
        return this.#string(at, 'invalid token');
      case OPEN_OBJECT:
        return this.#object(at, depth);
      case OPEN_ARRAY:
        return this.#array(at, depth);
      case COLON:
      case COMMA:
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        throw new JsonError('value expected', at);
      case undefined:
        throw new JsonError('no input', at);
      default:
        return isDigit(byte) || byte === MINUS ? this.#number(at) : this.#literal(at);
    }
  }

  #descend(open: number, depth: number): number {
    if (depth >= this.#levelsMax) throw new TooDeep('stack limit exceeded', open);
    return this.#blank(open + 1);
  }

  #object(open: number, depth: number): number {
    const bytes = this.#bytes;
    if (depth === 0) this.isObject = true;
    let at = this.#descend(open, depth);
    while (bytes[at] !== CLOSE_OBJECT) {
      if (bytes[at] !== QUOTE) throw new JsonError('string literal expected', at);
      const key = at;
      const keyEnd = this.#string(at, 'string literal expected');
      at = this.#blank(keyEnd);
      if (bytes[at] !== COLON) throw new JsonError('colon expected', at);
      const end = this.#value(at + 1, depth + 1);
      if (depth === 0) this.#options.onMember?.(key, keyEnd, this.#blank(at + 1), end);
      at = this.#blank(end);
      if (bytes[at] === COMMA) {
        at = this.#blank(at + 1);
        if (bytes[at] === CLOSE_OBJECT) throw new JsonError('unexpected map end', at);
      } else if (bytes[at] !== CLOSE_OBJECT) {
        throw new JsonError('comma or map end expected', at);
      }
    }
    return at + 1;
  }

  #array(open: number, depth: number): number {
    const bytes = this.#bytes;
    let at = this.#descend(open, depth);
    let from = open + 1;
    while (bytes[at] !== CLOSE_ARRAY) {
      at = this.#blank(this.#value(from, depth + 1));
      if (bytes[at] === COMMA) {
        from = at + 1;
        at = this.#blank(from);
        if (bytes[at] === CLOSE_ARRAY) throw new JsonError('unexpected array end', at);
      } else if (bytes[at] !== CLOSE_ARRAY) {
        throw new JsonError('comma or array end expected', at);
      }
    }
    return at + 1;
  }

  #string(open: number, otherwise: string): number {
    const bytes = this.#bytes;
    for (let at = open + 1; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) return at + 1;
      if (byte < FIRST_PRINTABLE) throw new JsonError('invalid string', open);
      if (byte === BACKSLASH) {
        const escaped = bytes[at + 1] ?? 0;
        if (escaped === LITTLE_U && this.#isHex(at + 2)) at += UNICODE_ESCAPE - 1;
        else if (ESCAPED.has(escaped)) at += 1;
        else break;
      }
    }
    throw new JsonError(otherwise, open);
  }

  #isHex(from: number): boolean {
    for (let at = from; at < from + 4; at += 1) {
      const byte = this.#bytes[at] ?? 0;
      const letter = byte | 0x20;
      if (!isDigit(byte) && (letter < 0x61 || letter > 0x66)) return false;
    }
    return true;
  }

  #number(start: number): number {
    const bytes = this.#bytes;
    let at = bytes[start] === MINUS ? start + 1 : start;
    const whole = at;
    at = this.#digits(at, start);
    if (bytes[whole] === ZERO && at > whole + 1) throw new JsonError('invalid token', start);
    if (bytes[at] === POINT) at = this.#digits(at + 1, start);
    let exponent = at;
    if (bytes[at] === LITTLE_E || bytes[at] === BIG_E) {
      at += 1;
      if (bytes[at] === PLUS || bytes[at] === MINUS) at += 1;
      exponent = at;
      at = this.#digits(at, start);
    }
    const mayOverflow = at - exponent >= EXPONENT_DIGITS || at - start > DIGITS;
    if (this.#options.isOverflowAllowed || !mayOverflow) return at;
    const number = Number(bytes.toString('latin1', start, at));
    if (!Number.isFinite(number)) throw new JsonError('invalid number', start);
    return at;
  }

  #digits(from: number, start: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (isDigit(bytes[at] ?? 0)) at += 1;
    if (at === from) throw new JsonError('invalid token', start);
    return at;
  }

  #literal(at: number): number {
    const literal = LITERALS.get(this.#bytes[at]);
    if (literal === undefined) throw new JsonError('invalid token', at);
    for (let index = 1; index < literal.length; index += 1) {
      if (this.#bytes[at + index] !== literal[index]) throw new JsonError('invalid token', at);
    }
    return at + literal.length;
  }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}
