/**
 * What a tool of the MCP endpoint is, and how tools read their arguments. An argument that is a
 * field of the REST interface is passed on under its own name: the checks of REST apply, and its
 * errors name the field.
 */

import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Json } from '../../http/body.ts';
import type { JsonObject } from '../../rest/json-validation.ts';

/** The REST interface in this process, with the key of the caller. */
export type Service = {
  /**
   * Sends a request, such as `GET /v1/sessions/{id}`. `T` is the answer as the contract has it.
   * Throws the Faults of REST.
   */
  call<T>(operation: string, parts?: Parts): Promise<T>;
  /** A path as an absolute URL. */
  link(path: string): string;
};

export type Parts = { path?: JsonObject; query?: JsonObject; body?: JsonObject };

export type Content =
  | { type: 'text'; text: string }
  | { type: 'image'; data: string; mimeType: string };

export type Answer = {
  content: Content[];
  /** For programs: ids that the next call needs. */
  structuredContent?: Readonly<Record<string, string>>;
};

/** A JSON schema. */
type Schema = { type: string; [keyword: string]: Json };

export type Tool = {
  name: string;
  /** For a model: what the tool does, what to call next. */
  description: string;
  /** JSON schemas of the arguments, by name. */
  properties: Readonly<Record<string, Schema>>;
  required: readonly string[];
  /** Of the protocol: hints for clients that ask their user before a call. */
  annotations: { readOnlyHint: boolean; destructiveHint?: boolean; openWorldHint?: boolean };
  run(given: JsonObject, service: Service): Promise<Answer>;
};

/**
 * In seconds. Ours: clients abandon a call after 60 s (DEFAULT_REQUEST_TIMEOUT_MSEC of the SDK), so
 * a wait ends before.
 */
export const WAIT = { minimum: 0, maximum: 45, default: 45 };
/** As core reads ids. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** An unknown argument's name is truncated to this in the error. */
const NAME_SHOWN_CHARS = 64;

export function text(words: string): Content {
  return { type: 'text', text: words };
}

/** Throws INVALID_FIELD for an argument that the tool has not, and for a missing one. */
export function checkNames({ name, properties, required }: Tool, given: JsonObject): void {
  const known = Object.keys(properties);
  for (const one of Object.keys(given)) {
    if (known.includes(one)) continue;
    const names = known.length === 0 ? 'none' : known.join(', ');
    const problem = `is not an argument of ${name}. Its arguments: ${names}.`;
    throw invalidField(one.slice(0, NAME_SHOWN_CHARS).toWellFormed(), problem);
  }
  for (const one of required) {
    if ((given[one] ?? null) === null) throw invalidField(one, `is required by ${name}.`);
  }
}

export function uuidIn(given: JsonObject, name: string): string {
  const value = given[name];
  if (typeof value === 'string' && UUID.test(value)) return value;
  throw invalidField(name, 'must be a UUID.');
}

export function isUuid(value: string): boolean {
  return UUID.test(value);
}

export function textIn(given: JsonObject, name: string): string {
  const value = given[name];
  if (typeof value === 'string' && value !== '') return value;
  throw invalidField(name, 'must be a text that is not empty.');
}

/** The given number, or the default of its schema. */
export function numberIn(given: JsonObject, name: string, range: WholeNumber): number {
  const { minimum, maximum, default: fallback } = range;
  const value = given[name] ?? fallback;
  const isWhole = typeof value === 'number' && Number.isInteger(value);
  if (isWhole && value >= minimum && value <= maximum) return value;
  throw invalidField(name, `must be a whole number from ${minimum} to ${maximum}.`);
}

export function flagIn(given: JsonObject, name: string): boolean {
  const value = given[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw invalidField(name, 'must be a boolean.');
}

export function choiceIn<T extends string>(
  given: JsonObject,
  name: string,
  choices: readonly [T, ...T[]],
): T {
  const value = given[name] ?? choices[0];
  const chosen = choices.find((one) => one === value);
  if (chosen !== undefined) return chosen;
  throw invalidField(name, `must be one of ${choices.join(', ')}.`);
}

/** The arguments with these names. */
export function picked(given: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = given[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export type WholeNumber = { minimum: number; maximum: number; default: number };

/** JSON schemas of arguments. */
export const schemas = {
  text: (description: string) => ({ type: 'string', description }),
  uuid: (description: string) => ({ type: 'string', format: 'uuid', description }),
  flag: (description: string) => ({ type: 'boolean', description }),
  whole: (range: WholeNumber, description: string) => ({ type: 'integer', ...range, description }),
  choice: (choices: readonly [string, ...string[]], description: string) => ({
    type: 'string',
    enum: [...choices],
    default: choices[0],
    description,
  }),
};
