/**
 * Converts reports of runners to stored values. Text of a handler is truncated: its size is not
 * trusted.
 */

import { STEPS_MAX } from '../../proto/common/limits.ts';
import type {
  CompleteBuildRequest,
  CompleteInvocationRequest,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { inRange } from '../api/checks.ts';
import { cutUtf8 } from '../delivery/envelope.ts';
import type { InvocationCause, InvocationStep } from '../store/types/invocations.ts';
import type { BuildOutcome, InvocationOutcome } from '../store/types/leases.ts';
import type { Store } from '../store/types.ts';
import type { Checked } from '../validation/manifests.ts';
import type { Validator } from '../validation/validator.ts';

/** In bytes of JSON. Source: proto/spec/functions.md 5. */
const RESULTS_MAX_BYTES = 6 << 20;
/**
 * Levels of nesting. Ours: each takes three of protobuf's; several thousand would exhaust a
 * reader's stack.
 */
const RESULTS_DEPTH_MAX = 300;
/** In bytes. Ours: an error's text is for people; the log has more. */
const MESSAGE_MAX_BYTES = 16 << 10;
const NAME_MAX_BYTES = 256;

/** Source: runners.proto. */
const STEP_NAME = { min: 1, max: 64, unit: ' characters' };

const INVOCATION_CODES = ['WORKLOAD_ERROR', 'TIMED_OUT', 'INTERNAL_ERROR'] as const;
/** Source: functions.proto, Build.Cause. */
const BUILD_CODES = [
  'NO_MANIFESTS_FOUND',
  'TOO_MANY_MANIFESTS',
  'MANIFEST_TOO_LARGE',
  'INVALID_SESSION_CREATE_PARAMS',
  'TIMED_OUT',
  'BUILD_ERROR',
  'INTERNAL_ERROR',
];

export async function invocationOutcome(
  { store, validator }: { store: Store; validator: Validator },
  leaseId: string,
  reported: CompleteInvocationRequest['outcome'],
): Promise<InvocationOutcome> {
  if (reported === undefined) return { kind: 'success', results: null };
  if (reported.$case === 'resultsJson') {
    const owner = async () => (await store.findLease(leaseId))?.projectId;
    return await resultsOutcome(reported.value, owner, validator);
  }
  const { code, message, name, stack } = reported.value;
  const known = INVOCATION_CODES.find((one) => one === code);
  if (!known) throw invalidField('failure.code', `must be one of ${INVOCATION_CODES.join(', ')}.`);
  const cause: InvocationCause = { code: known, message: cutUtf8(message, MESSAGE_MAX_BYTES) };
  if (name !== '') cause.name = cutUtf8(name, NAME_MAX_BYTES);
  if (stack !== '') cause.stack = cutUtf8(stack, MESSAGE_MAX_BYTES);
  return { kind: 'failure', cause };
}

/** To store; undefined without steps. Throws INVALID_FIELD. */
export function stepsJson(steps: CompleteInvocationRequest['steps']): string | undefined {
  if (steps.length === 0) return undefined;
  inRange('steps', steps.length, { max: STEPS_MAX, unit: ' items' });
  const stored = steps.map(({ name, startMs, endMs, failed }): InvocationStep => {
    inRange('steps.name', name.length, STEP_NAME);
    if (!(startMs >= 0 && endMs >= startMs && endMs <= Number.MAX_SAFE_INTEGER)) {
      throw invalidField('steps.endMs', 'must be a time that is not before its start.');
    }
    return [name, Math.round(startMs), Math.round(endMs), failed ? 1 : 0];
  });
  return JSON.stringify(stored);
}

/** The text is scanned, never parsed, and stored unchanged for the HTTP answer. */
async function resultsOutcome(
  json: string,
  owner: () => Promise<string | undefined>,
  validator: Validator,
): Promise<InvocationOutcome> {
  if (Buffer.byteLength(json) > RESULTS_MAX_BYTES) {
    return badResult('is larger than 6 MiB of JSON');
  }
  switch (await validator.json(owner, json, RESULTS_DEPTH_MAX)) {
    case 'syntax':
      return badResult('is not JSON');
    case 'depth':
      return badResult(`is nested deeper than ${RESULTS_DEPTH_MAX} levels`);
    case undefined:
      return { kind: 'success', results: json };
  }
}

function badResult(problem: string): InvocationOutcome {
  const message = `The result ${problem}.`;
  return { kind: 'failure', cause: { code: 'WORKLOAD_ERROR', message } };
}

/**
 * A success is stored only when the manifest is valid and the bundle was written by this lease's
 * project.
 */
export async function buildOutcome(
  { store, validator }: { store: Store; validator: Validator },
  leaseId: string,
  reported: CompleteBuildRequest['outcome'],
): Promise<BuildOutcome> {
  if (reported === undefined) throw invalidField('outcome', 'must be given.');
  if (reported.$case === 'failure') {
    const { code, message } = reported.value;
    if (!BUILD_CODES.includes(code)) {
      throw invalidField('failure.code', `must be one of ${BUILD_CODES.join(', ')}.`);
    }
    return { kind: 'failure', cause: { code, message: cutUtf8(message, MESSAGE_MAX_BYTES) } };
  }
  const { bundleBlobId, manifests } = reported.value;
  const [blob, lease] = await Promise.all([store.getBlob(bundleBlobId), store.findLease(leaseId)]);
  // A lost lease needs no check: its outcome is dropped.
  if (!lease) return { kind: 'success', bundleBlobId, manifests: [] };
  const checked = await validator.manifests(lease.projectId, manifests).catch(tooComplex);
  if (checked.kind === 'bad') return { kind: 'failure', cause: checked.cause };
  if (blob?.kind !== 'BUNDLE' || blob.projectId !== lease.projectId) {
    throw invalidField('bundleBlobId', 'must be a bundle written under this lease.');
  }
  return { kind: 'success', bundleBlobId, manifests: checked.manifests };
}

/** A build whose validation exceeded its time can be neither published nor validated later. */
function tooComplex(error: unknown): Checked {
  if (!(error instanceof Fault && error.reason === 'INVALID_FIELD')) throw error;
  const message = 'The schemas of its functions are too complex to be checked.';
  return { kind: 'bad', cause: { code: 'BUILD_ERROR', message } };
}
