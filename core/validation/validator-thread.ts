/**
 * The thread that validates values of tenants: params against a schema of the tenant, patterns of
 * proxies and manifests against the service's rules. An endless pattern or schema blocks this
 * thread only, and core/validation/validator.ts ends it.
 */
import { isMainThread, parentPort } from 'node:worker_threads';
import { must } from '../../proto/common/must.ts';
import type { CompleteBuildRequest_Success } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { type JsonProblem, jsonProblem } from '../../proto/json/json-scan.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { type PlainError, toPlain } from '../store/messages.ts';
import { type Checked, checkManifests } from './manifests.ts';
import { paramsChecker } from './params-schema.ts';
import type { Problem, SessionParams } from './session-params.ts';
import { patternsProblem } from './session-patterns.ts';

export type Params = Record<string, unknown>;

export type Check =
  | { kind: 'params'; version: { id: string; paramsSchema: string | null }; params: Params }
  | { kind: 'patterns'; session: SessionParams }
  | { kind: 'json'; text: string; depthMax: number }
  | { kind: 'manifests'; manifests: CompleteBuildRequest_Success['manifests'] };

export type CheckResult =
  | { kind: 'ready' }
  | { kind: 'params'; params: Params }
  | { kind: 'patterns'; problem: Problem | undefined }
  | { kind: 'json'; problem: JsonProblem | undefined }
  | { kind: 'manifests'; checked: Checked }
  | { kind: 'failed'; error: PlainError };

if (isMainThread)
  throw new Error('core/validation/validator-thread.ts runs in a thread of its own only');

const port = must(parentPort, 'port to the parent');
const checkParams = paramsChecker();
port.on('message', (check: Check) => port.postMessage(resultOf(check)));
port.postMessage({ kind: 'ready' } satisfies CheckResult);

function resultOf(check: Check): CheckResult {
  try {
    switch (check.kind) {
      case 'manifests':
        return { kind: 'manifests', checked: checkManifests(check.manifests) };
      case 'patterns':
        return { kind: 'patterns', problem: patternsProblem(check.session) };
      case 'json':
        return { kind: 'json', problem: jsonProblem(check.text, check.depthMax) };
      case 'params':
        checkParams(check.version, check.params); // fills in defaults
        return { kind: 'params', params: check.params };
    }
  } catch (error) {
    return { kind: 'failed', error: toPlain(refusalOf(error)) };
  }
}

/** A schema that refers to itself endlessly exhausts the stack: an error of the tenant. */
function refusalOf(error: unknown): unknown {
  if (error instanceof Fault || !(error instanceof RangeError)) return error;
  return invalidField('params', 'cannot be checked: the schema of the function has no end.');
}
