/**
 * Checks the functions that a build found: the manifests to publish, or the cause of the build's
 * failure. Pure. Source: proto/spec/functions.md 3.
 */
import {
  FUNCTION_NAME_MAX_CHARS,
  FUNCTIONS_MAX,
  MANIFEST_MAX_BYTES,
} from '../../proto/common/limits.ts';
import type { CompleteBuildRequest_Success } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { newId } from '../common/ids.ts';
import type { BuildCause } from '../store/types/functions.ts';
import type { BuiltManifest } from '../store/types/leases.ts';
import { schemaProblem } from './params-schema.ts';
import { patternsProblem, plainConfig, problemOf, type SessionParams } from './session-params.ts';

export type Manifest = CompleteBuildRequest_Success['manifests'][number];

export type Checked =
  | { kind: 'good'; manifests: BuiltManifest[] }
  | { kind: 'bad'; cause: BuildCause };

export function checkManifests(found: readonly Manifest[]): Checked {
  if (found.length === 0) return bad('NO_MANIFESTS_FOUND', 'The entry file defines no function.');
  if (found.length > FUNCTIONS_MAX) {
    const message = `The build defines ${found.length} functions; ${FUNCTIONS_MAX} are allowed.`;
    return bad('TOO_MANY_MANIFESTS', message);
  }
  // The last definition of a name wins, as in the published SDK.
  const byName = new Map(found.map((manifest) => [manifest.name, manifest]));
  const manifests: BuiltManifest[] = [];
  for (const manifest of byName.values()) {
    const cause = problem(manifest);
    if (cause) return { kind: 'bad', cause };
    manifests.push({
      functionId: newId(),
      versionId: newId(),
      name: manifest.name,
      sessionConfig: manifest.sessionConfigJson || null,
      paramsSchema: manifest.paramsSchemaJson || null,
    });
  }
  return { kind: 'good', manifests };
}

function problem({ name, sessionConfigJson, paramsSchemaJson }: Manifest): BuildCause | undefined {
  const size = Buffer.byteLength(name + sessionConfigJson + paramsSchemaJson);
  if (size > MANIFEST_MAX_BYTES) {
    const limit = `${MANIFEST_MAX_BYTES} bytes`;
    const message = `A function's name, sessionConfig and schema exceed ${limit}.`;
    return { code: 'MANIFEST_TOO_LARGE', message };
  }
  const length = [...name].length;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (length < 1 || length > FUNCTION_NAME_MAX_CHARS || /[/\x00-\x1f\x7f]/.test(name)) {
    const rule = `1 to ${FUNCTION_NAME_MAX_CHARS} characters, no "/" and no control characters`;
    const message = `Function names have ${rule}.`;
    return { code: 'BUILD_ERROR', message };
  }
  return configProblem(name, sessionConfigJson) ?? paramsProblem(name, paramsSchemaJson);
}

function configProblem(name: string, json: string): BuildCause | undefined {
  if (json === '') return undefined;
  const code = 'INVALID_SESSION_CREATE_PARAMS';
  const config = plainConfig(parsed(json));
  if (config === undefined)
    return { code, message: `Function "${name}": sessionConfig is not JSON.` };
  const wrong = problemOf(config) ?? patternsProblem(config as SessionParams);
  if (!wrong) return undefined;
  return { code, message: `Function "${name}": sessionConfig${wrong.path} ${wrong.problem}` };
}

function paramsProblem(name: string, json: string): BuildCause | undefined {
  if (json === '') return undefined;
  const schema = parsed(json);
  const wrong = schema === undefined ? 'it is not JSON' : schemaProblem(schema);
  if (wrong === undefined) return undefined;
  const message = `Function "${name}": the schema of its params cannot be used: ${wrong}.`;
  return { code: 'BUILD_ERROR', message };
}

/** Undefined, which no JSON text can be, for text that is not JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function bad(code: string, message: string): Checked {
  return { kind: 'bad', cause: { code, message } };
}
