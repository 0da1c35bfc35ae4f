/**
 * Converts JSON to messages of the generated code (ts-proto) and back, by descriptor. In a message,
 * times are Dates and absent plain fields have their defaults. Both drop members that are not in
 * the contract. Pure.
 */
import type { DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { scalarZeroValue } from '@bufbuild/protobuf/reflect';
import { FeatureSet_FieldPresence as Presence } from '@bufbuild/protobuf/wkt';

/** By the JSON names of its fields. */
export type Message = Readonly<Record<string, unknown>>;
/** Marked fields by JSON name; for a message or a list of messages, the marks in it. */
export type Marks<T extends string> = ReadonlyMap<string, T | Marks<T>>;

/** The JSON must be valid for the descriptor (json-validation.ts). */
export function messageOf({ fields }: DescMessage, json: JsonObject): Message {
  return Object.fromEntries(
    fields.map((field) => {
      const value = json[field.jsonName];
      return [field.jsonName, value === undefined ? defaultOf(field) : each(field, value, read)];
    }),
  );
}

/** Plain fields are always present, absent optional fields are not. */
export function jsonOf({ fields }: DescMessage, message: object): JsonObject {
  const json: JsonObject = {};
  for (const field of fields) {
    const value = (message as Message)[field.jsonName];
    if (value !== undefined) json[field.jsonName] = each(field, value, print) as JsonValue;
  }
  return json;
}

/** Undefined without marks. */
export function marksOf<T extends string>(
  { fields }: DescMessage,
  markOf: (field: DescField) => T | undefined,
): Marks<T> | undefined {
  const found = fields.flatMap((field): [string, T | Marks<T>][] => {
    // A Struct contains itself, and has no marks.
    const below =
      field.message && isOurs(field.message) ? marksOf(field.message, markOf) : undefined;
    const mark = markOf(field) ?? below;
    return mark === undefined ? [] : [[field.jsonName, mark]];
  });
  return found.length === 0 ? undefined : new Map(found);
}

type Convert = (message: DescMessage, value: unknown) => unknown;

/** Scalars and enums are the same on both sides. */
function each({ message, fieldKind }: DescField, value: unknown, convert: Convert): unknown {
  if (message === undefined) return value;
  if (fieldKind !== 'list') return convert(message, value);
  return (value as unknown[]).map((one) => convert(message, one));
}

function read(message: DescMessage, value: unknown): unknown {
  if (isOurs(message)) return messageOf(message, value as JsonObject);
  return isTime(message) ? new Date(value as string) : value;
}

function print(message: DescMessage, value: unknown): unknown {
  if (isOurs(message)) return jsonOf(message, value as object);
  return isTime(message) ? (value as Date).toISOString().replace('.000Z', 'Z') : value;
}

/** Others are google.protobuf.Struct and Value, which are JSON on both sides, and Timestamp. */
function isOurs({ typeName }: DescMessage): boolean {
  return typeName.startsWith('tabern.');
}

function isTime({ typeName }: DescMessage): boolean {
  return typeName === 'google.protobuf.Timestamp';
}

function defaultOf(field: DescField): unknown {
  if (field.fieldKind === 'list') return [];
  if (field.fieldKind === 'scalar' && field.presence === Presence.IMPLICIT) {
    return scalarZeroValue(field.scalar, false);
  }
  return undefined;
}
