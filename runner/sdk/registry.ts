/**
 * The registry of functions that a bundle defines: one map per bundle. The last definition of a
 * name wins. Dependency-free: it is part of every user's bundle and runs under Node and Deno alike.
 */
import { type Convert, jsonSchemaOf } from './schema.ts';
import type {
  Definition,
  FunctionConfig,
  Handler,
  Manifest,
  ParametersSchema,
  ParamsOf,
} from './types.ts';

/** In characters. Ours: the interface states none. */
const NAME_MAX_CHARACTERS = 128;
/** '/' would make a name ambiguous in paths of local tools; control characters garble logs. */
const NAME_FORBIDDEN = /[/\p{Cc}]/u;

const defined = new Map<string, Definition>();

/**
 * Defines a function: `defineFn('title', async (ctx, params) => ...)`. Publish the file that calls
 * it, or a file that imports that one. Throws a TypeError when the name or the handler is invalid.
 */
export function defineFn<S extends ParametersSchema>(
  name: string,
  handler: Handler<ParamsOf<S>>,
  config: FunctionConfig<S> & { parametersSchema: S },
): void;
export function defineFn<P = Record<string, unknown>>(
  name: string,
  handler: Handler<P>,
  config?: FunctionConfig,
): void;
export function defineFn(name: string, handler: Handler<never>, config: FunctionConfig = {}): void {
  checkName(name);
  const title = JSON.stringify(name);
  if (typeof handler !== 'function') {
    const wanted = 'the handler must be a function (ctx, params) => ...';
    throw new TypeError(`defineFn(${title}): ${wanted}; got ${kindOf(handler)}`);
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new TypeError(`defineFn(${title}): the options must be an object; got ${kindOf(config)}`);
  }
  const { isolation } = config;
  if (isolation !== undefined && isolation !== 'warm' && isolation !== 'fresh') {
    throw new TypeError(`defineFn(${title}): isolation must be 'warm' or 'fresh'`);
  }
  defined.set(name, { name, handler, config });
}

/** All functions defined so far, by name. */
export function definitions(): ReadonlyMap<string, Definition> {
  return defined;
}

/** The manifests that a build publishes. `convert`: toJSONSchema of zod 4, from the bundle. */
export function manifests(convert?: Convert): Manifest[] {
  return [...defined.values()].map(({ name, config }) => {
    const manifest: Manifest = { name };
    const { sessionConfig, parametersSchema } = config;
    if (sessionConfig !== undefined) {
      manifest.sessionConfig = plain(sessionConfig, name, 'sessionConfig');
    }
    const schema = jsonSchemaOf(parametersSchema, convert, (problem) =>
      console.warn(`function ${JSON.stringify(name)}: params are not checked: ${problem}`),
    );
    if (schema !== undefined) manifest.parametersSchema = plain(schema, name, 'parametersSchema');
    return manifest;
  });
}

function checkName(name: unknown): void {
  if (typeof name !== 'string') {
    throw new TypeError(`defineFn: the name must be a string; got ${kindOf(name)}`);
  }
  const title = JSON.stringify(name.slice(0, NAME_MAX_CHARACTERS));
  if (name.length < 1 || name.length > NAME_MAX_CHARACTERS) {
    throw new TypeError(
      `defineFn(${title}): a name is 1 to ${NAME_MAX_CHARACTERS} characters; it has ${name.length}`,
    );
  }
  if (NAME_FORBIDDEN.test(name) || !name.isWellFormed()) {
    throw new TypeError(
      `defineFn(${title}): the name must not contain '/' or control characters; use '-' instead`,
    );
  }
}

/** A JSON copy: a manifest must reach the service unchanged. */
function plain(value: unknown, name: string, option: string): unknown {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch (cause) {
    throw new TypeError(`defineFn(${JSON.stringify(name)}): ${option} must be plain JSON`, {
      cause,
    });
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value;
}
