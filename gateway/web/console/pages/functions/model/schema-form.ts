/**
 * A form for the params of a function, from their JSON schema. The service decides whether params
 * are right; the form only turns texts into values. Schemas are a tenant's: at most 64 KiB, and
 * what has no field of its own is JSON text. Pure.
 */

export type Field = {
  key: string;
  kind: 'text' | 'number' | 'boolean' | 'choice' | 'json';
  label: string;
  /** What it is, and its default. */
  hint: string;
  isRequired: boolean;
  /** JSON texts of the values of a choice. */
  choices: string[];
};
export type Texts = Readonly<Record<string, string>>;
export type Params = Record<string, unknown>;
/** What is wrong, and the key of its field where it has one. */
export type Problem = { key: string | undefined; text: string };
export type Read = { params: Params } | { problem: Problem };

/** Ours: a person fills in fewer; more are JSON. */
const FIELDS_MAX = 60;
const CHOICES_MAX = 200;
const HINT_MAX_CHARS = 300;
/** Keywords whose effect on a field is not known here. */
const OPEN = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', '$dynamicRef'];

type Schema = Record<string, unknown>;

/** The fields; undefined when the params have no schema or none that a form can show. */
export function fieldsOf(schema: unknown): Field[] | undefined {
  if (!isObject(schema) || schema['type'] !== 'object') return undefined;
  if (OPEN.some((keyword) => Object.hasOwn(schema, keyword))) return undefined;
  const { properties, required } = schema;
  if (!isObject(properties)) return undefined;
  const entries = Object.entries(properties);
  if (entries.length === 0 || entries.length > FIELDS_MAX) return undefined;
  const needed = new Set(Array.isArray(required) ? required : []);
  return entries.map(([key, one]) => fieldOf(key, isObject(one) ? one : {}, needed.has(key)));
}

function fieldOf(key: string, schema: Schema, isRequired: boolean): Field {
  const { title, description } = schema;
  const values = Array.isArray(schema['enum']) ? schema['enum'] : [];
  const kind = kindOf(schema, values);
  const hints = [
    typeof description === 'string' ? description : '',
    kind === 'json' && typeof schema['type'] === 'string' ? `${schema['type']}, as JSON` : '',
    Object.hasOwn(schema, 'default') ? `default: ${JSON.stringify(schema['default'])}` : '',
  ];
  return {
    key,
    kind,
    label: typeof title === 'string' && title !== '' ? `${title} (${key})` : key,
    hint: hints
      .filter((one) => one !== '')
      .join(' · ')
      .slice(0, HINT_MAX_CHARS),
    isRequired: isRequired && !Object.hasOwn(schema, 'default'),
    choices: kind === 'choice' ? values.map((value) => JSON.stringify(value)) : [],
  };
}

function kindOf(schema: Schema, values: unknown[]): Field['kind'] {
  if (OPEN.some((keyword) => Object.hasOwn(schema, keyword))) return 'json';
  if (values.length > 0) return values.length <= CHOICES_MAX ? 'choice' : 'json';
  switch (schema['type']) {
    case 'string':
      return 'text';
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'boolean';
    default:
      return 'json';
  }
}

/** The params that the texts stand for; an empty text leaves its member out. */
export function paramsOf(fields: readonly Field[], texts: Texts): Read {
  const members: [string, unknown][] = [];
  for (const field of fields) {
    const text = texts[field.key] ?? '';
    if (text.trim() === '') continue;
    try {
      members.push([field.key, valueFor(field, text)]);
    } catch {
      return { problem: { key: field.key, text: 'This is not valid JSON.' } };
    }
  }
  return { params: Object.fromEntries(members) };
}

/** A text that is no number is sent as it is: the service says what it needs. */
function valueFor({ kind }: Field, text: string): unknown {
  if (kind === 'text') return text;
  if (kind !== 'number') return JSON.parse(text);
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

/** The texts of params; undefined when the fields cannot show all of them. */
export function textsOf(fields: readonly Field[], params: Params): Texts | undefined {
  const byKey = new Map(fields.map((field) => [field.key, field]));
  const texts: [string, string][] = [];
  for (const [key, value] of Object.entries(params)) {
    const field = byKey.get(key);
    if (field === undefined) return undefined;
    const text = textOf(field, value);
    if (text === undefined) return undefined;
    texts.push([key, text]);
  }
  return Object.fromEntries(texts);
}

function textOf({ kind, choices }: Field, value: unknown): string | undefined {
  if (kind === 'text') return typeof value === 'string' && value !== '' ? value : undefined;
  if (kind === 'json') return JSON.stringify(value, undefined, 2);
  const text = typeof value === 'string' && kind === 'number' ? value : JSON.stringify(value);
  if (kind === 'choice') return choices.includes(text) ? text : undefined;
  return text;
}

/** JSON text as params: `{}` for an empty text. */
export function parsedParams(text: string): Read {
  if (text.trim() === '') return { params: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? `: ${error.message}` : '';
    return { problem: { key: undefined, text: `This is not valid JSON${reason}` } };
  }
  if (isObject(value)) return { params: value };
  const sentence = 'Params are a JSON object, such as {"url": "…"}.';
  return { problem: { key: undefined, text: sentence } };
}

const NAMED = /^`params(?:\/([^`/]*))?[^`]*` /;
const MISSING = /must have required property '(.*)'/;

/** The field that a refusal of the service names. */
export function problemOf(message: string, fields: readonly Field[]): Problem {
  const pointer = NAMED.exec(message)?.[1];
  const key = pointer?.replaceAll('~1', '/').replaceAll('~0', '~') ?? MISSING.exec(message)?.[1];
  const isField = fields.some((field) => field.key === key);
  return { key: isField ? key : undefined, text: message };
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
