/**
 * Validates JSON against a message's descriptor, strictly: no coercion, JSON names only, and errors
 * that name the field as the client spelled it. Ours instead of protobuf-es's own reader, which
 * accepts `"5"` for a number and `field_name` for `fieldName`, and names fields in protobuf's way.
 * `null` means absent, as in protobuf's JSON, except for google.protobuf.Value, where it is a
 * value.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { Json } from '../http/body.ts';

export type JsonObject = { [key: string]: Json };
type Reads = { closed: boolean; home: DescMessage; ignored: string[] };

/** In characters of JSON, of a value of any shape. Equals core's limit of params. */
const VALUE_MAX = 64 << 10;
/** Ours: a list in 64 KiB of JSON has fewer. */
const LIST_MAX = 20_000;
const UINT32_MAX = 2 ** 32 - 1;
const TIMESTAMP = 'google.protobuf.Timestamp';
/** Of a Timestamp, in ms since 1970: the years 1 to 9999 in UTC. */
const TIME_MIN = Date.parse('0001-01-01T00:00:00Z');
const TIME_MAX = Date.parse('9999-12-31T23:59:59.999Z');
/** RFC 3339, as protobuf's JSON reads it. */
const TIME = /^[0-9]{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Returns the body as the message's JSON. `closed` refuses unknown keys, in the message and in
 * messages of the same file; messages of other files, such as BrowserSettings in an invocation,
 * stay open. `ignored` receives the names of dropped keys.
 */
export function checkBody(
  message: DescMessage,
  body: Json,
  closed: boolean,
  ignored: string[] = [],
): JsonObject {
  if (!isObject(body)) throw new Fault('INVALID_FIELD', 'Body must be a JSON object.');
  return checkMessage(message, body, '', { closed, home: message, ignored });
}

/**
 * Converts one query or path value to its field's JSON: `"5"` becomes 5 for a number. One item of a
 * list.
 */
export function checkText(field: DescField, text: string): Json {
  const name = field.jsonName;
  if (field.fieldKind === 'list' && field.scalar === ScalarType.STRING) return text;
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.BOOL) {
    if (text !== 'true' && text !== 'false') throw invalidField(name, 'must be true or false.');
    return text === 'true';
  }
  if (field.fieldKind === 'scalar' && field.scalar !== ScalarType.STRING) {
    return checkNumber(field.scalar, /^-?\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : text, name);
  }
  if (field.fieldKind === 'scalar' || field.fieldKind === 'enum') {
    return checkValue(field, text, name, undefined);
  }
  if (field.message?.typeName === TIMESTAMP) return checkTime(text, name);
  throw new Error(`${field} cannot be a query parameter`);
}

/** A `+` that the client did not encode was decoded as a blank. */
function checkTime(text: string, path: string): string {
  const time = text.replace(/ (?=\d\d:\d\d$)/, '+');
  const at = TIME.test(time) ? Date.parse(time) : Number.NaN;
  if (!(at >= TIME_MIN && at <= TIME_MAX)) {
    throw invalidField(path, 'must be a date and time such as 2026-05-03T12:53:37Z.');
  }
  return time;
}

function checkMessage(
  message: DescMessage,
  body: JsonObject,
  prefix: string,
  reads: Reads,
): JsonObject {
  const fields = new Map(message.fields.map((field) => [field.jsonName, field]));
  const isClosed = reads.closed && message.file === reads.home.file;
  const kept: JsonObject = {};
  for (const [key, value] of Object.entries(body)) {
    const field = fields.get(key);
    const path = prefix + key;
    if (field === undefined) {
      if (isClosed) throw invalidField(path, 'is not a known field.');
      reads.ignored.push(path);
      continue;
    }
    if (value === null && !isAnyJson(field.message)) continue;
    kept[key] = checkField(field, value, path, reads);
  }
  return kept;
}

function checkField(field: DescField, value: Json, path: string, reads: Reads): Json {
  if (field.fieldKind === 'map') throw new Error(`${field}: use google.protobuf.Struct`);
  if (field.fieldKind !== 'list') return checkValue(field, value, path, reads);
  if (!Array.isArray(value)) throw invalidField(path, 'must be an array.');
  if (value.length > LIST_MAX) throw invalidField(path, `must have at most ${LIST_MAX} items.`);
  return value.map((item, index) => checkValue(field, item, `${path}[${index}]`, reads));
}

function checkValue(field: DescField, value: Json, path: string, reads: Reads | undefined): Json {
  if (field.message !== undefined) return checkChild(field.message, value, path, reads);
  if (field.enum !== undefined) {
    const names = field.enum.values.map((one) => one.name);
    if (typeof value === 'string' && names.includes(value)) return value;
    throw invalidField(path, `must be one of ${names.join(', ')}.`);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      if (typeof value !== 'string') throw invalidField(path, 'must be a string.');
      return value;
    case ScalarType.BOOL:
      if (typeof value !== 'boolean') throw invalidField(path, 'must be a boolean.');
      return value;
    default:
      return checkNumber(field.scalar, value, path);
  }
}

function checkNumber(scalar: ScalarType | undefined, value: Json, path: string): number {
  switch (scalar) {
    case ScalarType.DOUBLE:
      if (typeof value !== 'number') throw invalidField(path, 'must be a number.');
      return value;
    case ScalarType.UINT32: {
      const isWhole = typeof value === 'number' && Number.isInteger(value);
      if (!isWhole) throw invalidField(path, 'must be a whole number.');
      if (value < 0 || value > UINT32_MAX) throw invalidField(path, 'is out of range.');
      return value;
    }
    default:
      // REST uses uint32 and double only: 64-bit numbers would print as strings.
      throw new Error(`${path}: a scalar of type ${scalar} has no place in REST`);
  }
}

function checkChild(
  message: DescMessage,
  value: Json,
  path: string,
  reads: Reads | undefined,
): Json {
  if (isAnyJson(message)) return small(value, path);
  if (!isObject(value) || reads === undefined) throw invalidField(path, 'must be an object.');
  if (message.typeName === 'google.protobuf.Struct') return small(value, path);
  return checkMessage(message, value, `${path}.`, reads);
}

/** Core's limits are lower; over gRPC a value costs about 100 times the CPU time of its text. */
function small<T extends Json>(value: T, path: string): T {
  if (JSON.stringify(value).length <= VALUE_MAX) return value;
  throw invalidField(path, `must be at most ${VALUE_MAX} bytes of JSON.`);
}

function isAnyJson(message: DescMessage | undefined): boolean {
  return message?.typeName === 'google.protobuf.Value';
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
