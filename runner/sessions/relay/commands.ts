/**
 * Reads what a client sends as a command without parsing it whole, and reports what is no command
 * in Chrome's words (crdtp/dispatch.cc of Chromium). What is passed on is written anew around the
 * bytes of its params, so Chrome sees the id, method and session that were judged. Pure.
 */
import { JsonError, JsonScan } from '../../browser/cdp/scan.ts';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/**
 * Of a message whose params are parsed. Ours: JSON.parse takes 2 ms for so many, and the headers of
 * a request are hundreds.
 */
const VALUES_MAX = 10_000;

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

const QUOTE = 0x22;
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
const LETTER_N = 0x6e;
/** As Chrome's own messages of ASCII are; any other string is no name to it. */
const ASCII = /^\p{ASCII}*$/u;
/** Quotes included: a longer key is none of the four however it is escaped. */
const KEY_MAX_BYTES = 6 * 'sessionId'.length + 2;

const NO_OBJECT = 'Message must be an object';
const NO_ID = "Message must have integer 'id' property";
const NO_METHOD = "Message must have string 'method' property";
const NO_SESSION_ID = "Message may have string 'sessionId' property";
const NO_PARAMS = "Message may have object 'params' property";
const UNKNOWN = "Message has property other than 'id', 'method', 'sessionId', 'params'";

export type ErrorBody = { code: number; message: string; data?: string };
/** What is no command; `id` as far as it has one. */
export type Malformed = { id?: number; error: ErrorBody };
/** A command. `sessionId` is empty when it names none. */
export type Message = {
  id: number;
  method: string;
  sessionId: string;
  /** JSON of an object or an array, as it is on the wire. */
  params: Buffer | undefined;
  /** How many values the message holds. */
  values: number;
};

/** `bytes` are valid UTF-8: ws checks text messages. */
export function readMessage(bytes: Buffer): Message | Malformed {
  const envelope = new Envelope(bytes);
  try {
    const { isObject, values } = new JsonScan(bytes, envelope.take);
    return envelope.read(isObject, values);
  } catch (error) {
    if (error instanceof JsonError) return { error: fault(PARSE_ERROR, error.message) };
    throw error;
  }
}

/** The params of a command that is judged by them; of too many values it is refused. */
export function paramsOf(
  message: Message,
): { params?: Record<string, unknown> } | { error: ErrorBody } {
  const { method, params, values } = message;
  if (params === undefined) return {};
  if (values > VALUES_MAX) {
    const limit = `${method} takes at most ${VALUES_MAX} values in its params`;
    return { error: fault(INVALID_PARAMS, limit) };
  }
  if (params[0] === OPEN_OBJECT) return { params: JSON.parse(params.toString()) };
  const data = 'Failed to deserialize params - CBOR: map start expected at position 7';
  return { error: { ...fault(INVALID_PARAMS, 'Invalid parameters'), data } };
}

/** The command as Chrome gets it, on that session. */
export function encodeCommand({ id, method, params }: Message, sessionId: string): Buffer {
  const names = `"method":${JSON.stringify(method)},"sessionId":${JSON.stringify(sessionId)}`;
  const head = `{"id":${id},${names}${params === undefined ? '}' : ',"params":'}`;
  if (params === undefined) return Buffer.from(head, 'latin1');
  const whole = Buffer.allocUnsafe(head.length + params.length + 1);
  whole.write(head, 'latin1');
  params.copy(whole, head.length);
  whole[whole.length - 1] = 0x7d;
  return whole;
}

/** The members of a message, read in their order; the first fault counts, as in Chrome. */
class Envelope {
  readonly #bytes: Buffer;
  readonly #seen = new Set<string>();
  #id: number | undefined;
  #method: string | undefined;
  #sessionId: string | undefined = '';
  #params: Buffer | undefined;
  #error: ErrorBody | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  readonly take = (key: number, keyEnd: number, value: number, end: number): void => {
    if (this.#error !== undefined) return;
    const name = keyEnd - key > KEY_MAX_BYTES ? '' : this.#text(key, keyEnd);
    if (name === undefined || this.#seen.has(name)) {
      const what = name === undefined ? 'invalid' : 'duplicate';
      this.#error = fault(PARSE_ERROR, `CBOR: ${what} map key at position ${key}`);
      return;
    }
    this.#seen.add(name);
    const wrong = this.#takeNamed(name, value, end);
    if (wrong !== undefined) this.#error = fault(INVALID_REQUEST, wrong);
  };

  read(isObject: boolean, values: number): Message | Malformed {
    const [id, method] = [this.#id, this.#method];
    if (!isObject) return { error: fault(INVALID_REQUEST, NO_OBJECT) };
    if (id === undefined) return { error: this.#error ?? fault(INVALID_REQUEST, NO_ID) };
    if (this.#error !== undefined) return { id, error: this.#error };
    if (!method) return { id, error: fault(INVALID_REQUEST, NO_METHOD) };
    return { id, method, sessionId: this.#sessionId ?? '', params: this.#params, values };
  }

  /** Gives what is wrong with it. */
  #takeNamed(name: string, value: number, end: number): string | undefined {
    switch (name) {
      case 'id':
        this.#id = this.#int32(value, end);
        return this.#id === undefined ? NO_ID : undefined;
      case 'method':
        this.#method = this.#text(value, end);
        return this.#method === undefined ? NO_METHOD : undefined;
      case 'sessionId':
        this.#sessionId = this.#text(value, end);
        return this.#sessionId === undefined ? NO_SESSION_ID : undefined;
      case 'params':
        return this.#takeParams(value, end) ? undefined : NO_PARAMS;
      default:
        return UNKNOWN;
    }
  }

  #takeParams(value: number, end: number): boolean {
    const first = this.#bytes[value];
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      this.#params = this.#bytes.subarray(value, end);
      return true;
    }
    return first === LETTER_N; // null
  }

  /** Any number of that value: 1e2 is 100. */
  #int32(value: number, end: number): number | undefined {
    const number = Number(this.#bytes.toString('latin1', value, end));
    const isInt32 = Number.isInteger(number) && number >= INT32_MIN && number <= INT32_MAX;
    return isInt32 ? number + 0 : undefined;
  }

  /** Of a string of ASCII. */
  #text(value: number, end: number): string | undefined {
    if (this.#bytes[value] !== QUOTE || this.#bytes[end - 1] !== QUOTE) return undefined;
    const raw = this.#bytes.toString('latin1', value + 1, end - 1);
    const text = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
    return ASCII.test(text) ? text : undefined;
  }
}

function fault(code: number, message: string): ErrorBody {
  return { code, message };
}
