/** Converts a parametersSchema to JSON Schema (2020-12). Recognises zod by its properties. Pure. */

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
 * The schema as JSON Schema; undefined when there is none. Calls `warn` with the reason when params
 * cannot be validated. zod 4 is converted by its instance method, else by `convert`; zod 3 has no
 * conversion to JSON Schema.
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
    warn('this zod has no conversion to JSON Schema; upgrade zod to 4.2 or later');
    return undefined;
  }
  if (typeof schema._def?.typeName === 'string') {
    warn('zod 3 has no conversion to JSON Schema; use zod 4, or pass a JSON Schema');
    return undefined;
  }
  const standard = schema['~standard'];
  if (standard === undefined) return schema;
  const input = standard.jsonSchema?.input;
  if (typeof input === 'function') return input({ target: TARGET });
  warn(`${String(standard.vendor)} has no conversion to JSON Schema; pass a JSON Schema`);
  return undefined;
}

/** Converts the output side, as the published SDK does, or the input side with transforms. */
function ofZod(convert: (options: Options) => unknown): unknown {
  try {
    return convert({ target: TARGET });
  } catch {
    return convert({ target: TARGET, io: 'input', unrepresentable: 'any' });
  }
}
