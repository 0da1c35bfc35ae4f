/**
 * The thread that validates values of tenants: params against a schema of the tenant, patterns of
 * proxies and manifests against the service's rules; and computes times of their cron texts. An
 * endless pattern or schema blocks this thread only, and core/validation/validator.ts ends it.
 */
import { isMainThread, parentPort } from 'node:worker_threads';
import { must } from '../../proto/common/must.ts';
import { jsonProblem } from '../../proto/json/json-scan.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { type PlainError, toPlain } from '../store/messages.ts';
import { readCertificates } from './certificates.ts';
import { lastTime, nextTime } from './cron.ts';
import { checkManifests } from './manifests.ts';
import { type Params, paramsChecker, type Schema } from './params-schema.ts';
import { patternsProblem } from './session-params.ts';

const checkParams = paramsChecker();
const CHECKS = {
  manifests: checkManifests,
  patterns: patternsProblem,
  json: jsonProblem,
  nextTime,
  lastTime,
  certificates: readCertificates,
  params(version: Schema, params: Params): Params {
    checkParams(version, params); // fills in defaults
    return params;
  },
};

export type Checks = typeof CHECKS;
export type Check = {
  [K in keyof Checks]: { kind: K; args: Parameters<Checks[K]> };
}[keyof Checks];
export type CheckAnswer =
  | { kind: 'ready' }
  | { kind: 'done'; result: unknown }
  | { kind: 'failed'; error: PlainError };

if (isMainThread)
  throw new Error('core/validation/validator-thread.ts runs in a thread of its own only');

const port = must(parentPort, 'port to the parent');
port.on('message', (check: Check) => port.postMessage(answerOf(check)));
port.postMessage({ kind: 'ready' } satisfies CheckAnswer);

function answerOf({ kind, args }: Check): CheckAnswer {
  const run = CHECKS[kind] as (...values: unknown[]) => unknown;
  try {
    return { kind: 'done', result: run(...args) };
  } catch (error) {
    return { kind: 'failed', error: toPlain(refusalOf(error)) };
  }
}

/** A schema that refers to itself endlessly exhausts the stack: an error of the tenant. */
function refusalOf(error: unknown): unknown {
  if (error instanceof Fault || !(error instanceof RangeError)) return error;
  return invalidField('params', 'cannot be checked: the schema of the function has no end.');
}
