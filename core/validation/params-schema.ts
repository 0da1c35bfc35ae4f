/**
 * Checks an invocation's params against the version's schema (JSON schema draft 2020-12) and fills
 * in its defaults, as zod's schemas expect: they require fields that have one. Schemas are a
 * tenant's: at most 64 KiB, no remote references.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { invalidField } from '../../proto/rpc/errors.ts';

/** Ours: compiled schemas kept; a compilation takes milliseconds. */
const COMPILED_MAX = 500;

export type Params = Record<string, unknown>;
/** The schema of a version, as JSON text. */
export type Schema = { id: string; paramsSchema: string | null };

/** A checker that keeps compiled schemas by version: versions do not change. */
export function paramsChecker() {
  const compiled = new LRUCache<string, ValidateFunction>({ max: COMPILED_MAX });
  return (version: Schema, params: Params): void => {
    if (version.paramsSchema === null) return;
    const validate = compiled.get(version.id) ?? compile(JSON.parse(version.paramsSchema));
    compiled.set(version.id, validate);
    if (validate(params)) return;
    const [error] = validate.errors ?? [];
    const problem = `${error?.message ?? 'is not valid'}.`;
    throw invalidField(`params${error?.instancePath ?? ''}`, problem);
  };
}

/** Why the schema cannot be used; undefined when it can. */
export function schemaProblem(schema: unknown): string | undefined {
  try {
    compile(schema);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Each schema has its own compiler, because ids in one tenant's schema must not be visible to
 * another's. Throws for an invalid schema.
 */
function compile(schema: unknown): ValidateFunction {
  if (typeof schema !== 'object' || schema === null) throw new Error('schema must be an object');
  const ajv = new Ajv2020({
    strict: false,
    useDefaults: true,
    validateFormats: false, // zod writes a pattern beside each format
    logger: false,
    unicodeRegExp: false, // zod's own patterns hold escapes that the u flag refuses
  });
  const validate = ajv.compile(schema);
  if ('$async' in validate) throw new Error('schema must not be asynchronous');
  return validate as ValidateFunction;
}
