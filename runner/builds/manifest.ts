/**
 * Validates what introspection of a bundle returned. Pure. The tenant's code produced the value, so
 * each member is checked and copied; an invalid one is a BuildFailure with its cause code.
 */
import {
  FUNCTION_NAME_MAX_CHARS,
  FUNCTIONS_MAX,
  INVOCATION_TIMEOUT_MAX_S,
  INVOCATION_TIMEOUT_MIN_S,
  MANIFEST_MAX_BYTES,
} from '../../proto/common/limits.ts';
import type { CompleteBuildRequest_Manifest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { BuildFailure, buildError } from './build-failure.ts';
import { isObject } from './read-file.ts';

const NAME_FORBIDDEN = /[/\p{Cc}]/u;
/** Session settings that a function may not set. Source: proto/spec/functions.md 3. */
const SESSION_KEYS_REFUSED = [
  'keepAlive',
  'region',
  'playground',
  'scheduleMode',
  'solverServices',
  'projectId',
];

/** The manifests for CompleteBuild. Throws a BuildFailure for those that cannot be published. */
export function readManifests(found: unknown): CompleteBuildRequest_Manifest[] {
  if (!Array.isArray(found)) throw buildError('the bundle reported no list of functions');
  if (found.length === 0) {
    throw new BuildFailure(
      'NO_MANIFESTS_FOUND',
      'the entry file defines no function; call defineFn(name, handler) in it or what it imports',
    );
  }
  if (found.length > FUNCTIONS_MAX) {
    throw new BuildFailure(
      'TOO_MANY_MANIFESTS',
      `${found.length} functions, the limit is ${FUNCTIONS_MAX}; publish from several entry files`,
    );
  }
  const manifests = found.map(readManifest);
  if (new Set(manifests.map(({ name }) => name)).size !== manifests.length) {
    throw buildError('the bundle reported a function twice');
  }
  return manifests;
}

function readManifest(found: unknown): CompleteBuildRequest_Manifest {
  if (!isObject(found)) throw buildError('the bundle reported a function that is not an object');
  const { name, sessionConfig, parametersSchema } = found;
  if (typeof name !== 'string' || !isName(name)) {
    throw buildError('the bundle reported a function without a usable name');
  }
  const title = JSON.stringify(name);
  if (sessionConfig !== undefined) checkSessionConfig(sessionConfig, title);
  if (parametersSchema !== undefined && !isObject(parametersSchema)) {
    throw buildError(`parametersSchema of function ${title} is not a JSON schema`);
  }
  const manifest = {
    name,
    sessionConfigJson: text(sessionConfig),
    paramsSchemaJson: text(parametersSchema),
  };
  const bytes = Object.values(manifest).reduce((sum, one) => sum + Buffer.byteLength(one), 0);
  if (bytes > MANIFEST_MAX_BYTES) {
    throw new BuildFailure(
      'MANIFEST_TOO_LARGE',
      `the options of function ${title} take ${bytes} bytes, the limit is ${MANIFEST_MAX_BYTES}`,
    );
  }
  return manifest;
}

function checkSessionConfig(config: unknown, title: string): void {
  if (!isObject(config)) throw invalidSession(title, 'must be an object');
  const refused = SESSION_KEYS_REFUSED.find((key) => Object.hasOwn(config, key));
  if (refused) throw invalidSession(title, `must not set ${refused}; remove it`);
  const timeout = config['timeout'];
  if (timeout === undefined) return;
  const isRange = Number.isInteger(timeout) && Number(timeout) >= INVOCATION_TIMEOUT_MIN_S;
  if (!isRange || Number(timeout) > INVOCATION_TIMEOUT_MAX_S) {
    const range = `${INVOCATION_TIMEOUT_MIN_S} to ${INVOCATION_TIMEOUT_MAX_S}`;
    throw invalidSession(title, `must have a timeout of ${range} seconds`);
  }
}

function isName(name: string): boolean {
  const isShort = name.length >= 1 && name.length <= FUNCTION_NAME_MAX_CHARS;
  return isShort && !NAME_FORBIDDEN.test(name) && name.isWellFormed();
}

function text(value: unknown): string {
  if (value === undefined) return '';
  try {
    return JSON.stringify(value);
  } catch {
    // the value was parsed from JSON, so only its depth can make this fail
    throw buildError('the options of a function are nested too deeply');
  }
}

function invalidSession(title: string, problem: string): BuildFailure {
  const message = `sessionConfig of function ${title} ${problem}`;
  return new BuildFailure('INVALID_SESSION_CREATE_PARAMS', message);
}
