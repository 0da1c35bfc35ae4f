/**
 * The rows of a new invocation and its session: of a published function, or of the service's own.
 */
import { traceparentIn } from '../../proto/common/tracing.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { newId } from '../common/ids.ts';
import { type SessionSecrets, withIgnored } from '../sessions/proxy-secrets.ts';
import { resourcesOf } from '../sessions/session-resources.ts';
import type { NewInvocation } from '../store/types/invocations.ts';
import type { Store } from '../store/types.ts';
import type { SessionParams } from '../validation/session-params.ts';
import type { Validator } from '../validation/validator.ts';

/** The only region of functions. Source: proto/spec/functions.md 1. */
const REGION = 'us-west-2';

export type NewInvocationDeps = {
  store: Store;
  now: () => number;
  validator: Validator;
  secrets: SessionSecrets;
  /** Limit of pending invocations of a project. */
  queueMax: number;
};

/** `params` is JSON; `session` is valid but for its patterns, see `checkPatterns`. */
export type Wanted = {
  functionId: string;
  versionId: string;
  params: string;
  session: SessionParams;
  timeoutMs: number;
  /** How long it may wait for a runner. */
  waitMs: number;
};

/** A request of the project, or its schedule. */
export type Starter = { projectId: string; call: Pick<Call, 'metadata'> };

/** Throws INVALID_FIELD for a pattern of a proxy. `prefix` is the field that has the session. */
export async function checkPatterns(
  { validator }: Pick<NewInvocationDeps, 'validator'>,
  projectId: string,
  { session, prefix }: { session: SessionParams; prefix: string },
): Promise<void> {
  const wrong = await validator.patterns(projectId, session);
  if (wrong) throw invalidField(`${prefix}${wrong.path}`.replace(/^\./, ''), wrong.problem);
}

/** Throws RESOURCE_NOT_FOUND for a context or an extension that the project does not have. */
export async function newInvocation(
  { store, now, secrets, queueMax }: NewInvocationDeps,
  { functionId, versionId, params, session, timeoutMs, waitMs }: Wanted,
  { projectId, call }: Starter,
): Promise<NewInvocation> {
  const { contextId } = await resourcesOf(store, session, projectId);
  const [at, sessionId] = [now(), newId()];
  return {
    id: newId(),
    sessionId,
    projectId,
    functionId,
    versionId,
    region: REGION,
    contextId,
    queueMax,
    at,
    waitUntil: at + waitMs,
    params,
    sessionParams: secrets.seal(withIgnored(session, call), sessionId),
    userMetadata: JSON.stringify(session['userMetadata']) ?? null,
    timeoutMs,
    traceparent: traceparentIn(call.metadata),
  };
}
