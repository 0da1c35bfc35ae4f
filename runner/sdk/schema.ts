/**
 * From what users write as parametersSchema to JSON schema, draft 2020-12. Pure; knows zod by its
 * marks, imports nothing.
 */

/** zod 4's `toJSONSchema`. */
export type Convert = (schema: never, options?: Options) => unknown;

type Options = { io?: 'input' | 'output'; target?: string; unrepresentable?: 'any' };
type Standard = {
  vendor?: unknown;
  jsonSchema?: { input?: (options: { target: string }) => unknown };
};
type Marks = {
  _zod?: unknown;
  _def?: { typeName?: unknown };
  toJSONSchema?: unknown;
  '~standard'?: Standard;
};

const TARGET = 'draft-2020-12';

/**
 * The schema as JSON schema; undefined for none. `warn` is told why params will not be checked.
 * zod 4 goes through its instance, else through `convert`; zod 3 cannot say itself in JSON schema.
 */
export function jsonSchemaOf(
  schema: unknown,
  convert: Convert | undefined,
  warn: (problem: string) => void,
): unknown {
  if (schema === undefined || schema === null) return undefined;
  if (typeof schema !== 'object' && typeof schema !== 'function') {
    warn(`parametersSchema is a ${typeof schema}, not a schema`);
    return undefined;
  }
  try {
    return converted(schema as Marks, convert, warn);
  } catch (error) {
    warn(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

function converted(schema: Marks, convert: Convert | undefined, warn: (problem: string) => void) {
  if (schema._zod !== undefined) {
    const instance = schema.toJSONSchema;
    if (typeof instance === 'function') {
      return ofZod((options) => instance.call(schema, options));
    }
    if (convert) return ofZod((options) => convert(schema as never, options));
    warn('this zod cannot say itself in JSON schema; upgrade zod to 4.2 or later');
    return undefined;
  }
  if (typeof schema._def?.typeName === 'string') {
    warn('zod 3 schemas cannot say themselves in JSON schema; use zod 4, or give a JSON schema');
    return undefined;
  }
  const standard = schema['~standard'];
  if (standard === undefined) return schema;
  const input = standard.jsonSchema?.input;
  if (typeof input === 'function') return input({ target: TARGET });
  warn(
    `${String(standard.vendor)} schemas cannot say themselves in JSON schema; give a JSON schema`,
  );
  return undefined;
}

/**
 * As the reference does it, from the output side; a schema with transforms has only an input side.
 */
function ofZod(say: (options: Options) => unknown): unknown {
  try {
    return say({ target: TARGET });
  } catch {
    return say({ target: TARGET, io: 'input', unrepresentable: 'any' });
  }
}
