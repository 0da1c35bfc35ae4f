/**
 * Reads client messages as commands without parsing them whole. A malformed command gets Chrome's
 * own error (crdtp/dispatch.cc of Chromium). Forwarded commands are encoded anew around the bytes
 * of their params, so Chrome receives exactly the id, method and session that the policy checked.
 * Pure.
 */
import { JsonError, JsonScan } from '../../../proto/json/json-scan.ts';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/**
 * Of a message whose params are parsed. Ours: JSON.parse takes 2 ms for 10,000 values, and the
 * headers of a request are hundreds.
 */
const VALUES_MAX = 10_000;

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

const QUOTE = 0x22;
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
const LETTER_N = 0x6e;
/** Chrome's own message names are ASCII; no other string is a valid name. */
const ASCII = /^\p{ASCII}*$/u;
/** Including quotes: a longer key is none of the four, however it is escaped. */
const KEY_MAX_BYTES = 6 * 'sessionId'.length + 2;

const NO_OBJECT = 'Message must be an object';
const NO_ID = "Message must have integer 'id' property";
const NO_METHOD = "Message must have string 'method' property";
const NO_SESSION_ID = "Message may have string 'sessionId' property";
const NO_PARAMS = "Message may have object 'params' property";
const UNKNOWN = "Message has property other than 'id', 'method', 'sessionId', 'params'";

export type ErrorBody = { code: number; message: string; data?: string };
/** A malformed command; `id` when it has a valid one. */
export type Malformed = { id?: number; error: ErrorBody };
/** A command. `sessionId` is empty when the command names none. */
export type Message = {
  id: number;
  method: string;
  sessionId: string;
  /** JSON of an object or an array, as received. */
  params: Buffer | undefined;
  /** Number of values in the message. */
  values: number;
};

/** `bytes` must be valid UTF-8: ws checks text messages. */
export function readMessage(bytes: Buffer): Message | Malformed {
  const envelope = new Envelope(bytes);
  try {
    const { isObject, values } = new JsonScan(bytes, { onMember: envelope.take });
    return envelope.read(isObject, values);
  } catch (error) {
    if (error instanceof JsonError) return { error: fault(PARSE_ERROR, error.message) };
    throw error;
  }
}

/** The params of a command that the policy inspects. Commands with too many values are refused. */
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

/** The command as sent to Chrome, on that session. */
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

/** Reads the members of a message in order; the first error counts, as in Chrome. */
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

  /** Returns the error message, if any. */
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

  /** Any spelling of that number: 1e2 is 100. */
  #int32(value: number, end: number): number | undefined {
    const number = Number(this.#bytes.toString('latin1', value, end));
    const isInt32 = Number.isInteger(number) && number >= INT32_MIN && number <= INT32_MAX;
    return isInt32 ? number + 0 : undefined;
  }

  /** The text of an ASCII string. */
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
