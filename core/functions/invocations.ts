/**
 * Invocations: one run of a function each. PENDING -> RUNNING -> COMPLETED | FAILED, once. Status,
 * session, event and deliveries change in one store operation: a crash keeps a whole step or
 * nothing of it.
 */

import {
  INVOCATION_TIMEOUT_DEFAULT_S,
  INVOCATION_WAIT_MAX_S,
  PARAMS_MAX_BYTES,
} from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import type {
  InvocationServiceService,
  InvokeFunctionRequest,
} from '../../proto/gen/tabern/v1/invocations.pb.ts';
import { jsonProblem } from '../../proto/json/json-scan.ts';
import { invalidField, notFound } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { readOffsets } from '../api/pagination.ts';
import { pathId } from '../common/ids.ts';
import type { LogReaders } from '../common/log-readers.ts';
import type { Quotas } from '../projects/quotas.ts';
import { logEnd } from '../sessions/ended-sessions.ts';
import type { VersionRow } from '../store/types/functions.ts';
import type { InvocationRow, NewInvocation } from '../store/types/invocations.ts';
import type { Store } from '../store/types.ts';
import {
  merged,
  plainConfig,
  plainParams,
  problemOf,
  type SessionParams,
} from '../validation/session-params.ts';
import { logToProto } from './functions.ts';
import { idempotencyKey, KEY_KEPT_MS } from './idempotency.ts';
import { fitting, invocationToProto } from './invocation-view.ts';
import { jsonOf } from './json-values.ts';
import {
  checkPatterns,
  type NewInvocationDeps,
  newInvocation,
  type Starter,
} from './new-invocation.ts';

/** Levels of nesting. Ours: the limit of REST is lower. */
const PARAMS_DEPTH_MAX = 100;

/** What accepts an invocation: a request or a schedule. */
export type InvocationDeps = NewInvocationDeps & {
  quotas: Pick<Quotas, 'checkResults'>;
  /** How long an invocation may wait for a runner. */
  waitMs: number;
};

type Options = InvocationDeps & {
  log: Log;
  closing: AbortSignal;
  readers: Pick<LogReaders, 'note'>;
};

/** An invocation as asked for. */
export type Asked = {
  functionId: string;
  /** The newest when undefined. */
  versionId: string | undefined;
  params: SessionParams;
  sessionCreateParams: SessionParams;
};

export function invocationService(
  options: Options,
): Service<typeof InvocationServiceService, ProjectCaller> {
  const { store, log, now, readers } = options;

  async function find(text: string, projectId: string): Promise<InvocationRow> {
    const id = pathId('id', text);
    return orNotFound(await store.getInvocation({ id, projectId }), 'Invocation', id);
  }

  return {
    /** Accepts one invocation and answers at once; a runner leases it. */
    async invokeFunction(request, caller) {
      const row = await accept(options, request, caller);
      return { invocation: invocationToProto(row, jsonOf(caller.call)) };
    },

    async getInvocation({ id: text, wait = 0 }, { projectId, call }) {
      inRange('wait', wait, { max: INVOCATION_WAIT_MAX_S });
      const wanted = { id: pathId('id', text), projectId };
      const row = await ended(options, wanted, { call, waitMs: wait * 1_000 });
      return { invocation: invocationToProto(row, jsonOf(call)) };
    },

    async cancelInvocation({ id: text }, { projectId, call }) {
      const id = pathId('id', text);
      const found = await store.cancelInvocation({ id, projectId, at: now() });
      const { invocation, session } = orNotFound(found, 'Invocation', id);
      if (session !== undefined) logEnd(log, session);
      return { invocation: invocationToProto(invocation, jsonOf(call)) };
    },

    async listInvocations(request, { projectId, call }) {
      const versionId = pathId('versionId', request.versionId);
      const filter = { versionId, projectId, status: request.status, ...readOffsets(request) };
      const [version, { rows, total }] = await Promise.all([
        store.getVersion({ id: versionId, projectId }),
        store.listInvocations(filter),
      ]);
      orNotFound(version, 'Version', versionId);
      const show = jsonOf(call);
      const results = fitting(rows).map(({ row, hasParams }) => ({
        ...invocationToProto(row, show),
        ...(hasParams ? {} : { params: undefined, paramsJson: undefined }),
      }));
      return { results, total };
    },

    async listInvocationLogs({ id }, { projectId }) {
      const invocation = await find(id, projectId);
      readers.note(invocation.id);
      const lines = await store.listLogs(invocation.id);
      return { logs: lines.map(logToProto), total: lines.length };
    },
  };
}

/** Creates an invocation, or returns that of a known idempotency key. */
async function accept(
  options: InvocationDeps,
  request: InvokeFunctionRequest,
  caller: ProjectCaller,
): Promise<InvocationRow> {
  const { store, now } = options;
  const { projectId } = caller;
  const functionId = pathId('functionId', request.functionId);
  const named = request.versionId;
  const versionId = named === undefined ? undefined : pathId('versionId', named);
  const params = givenParams(request);
  const over = plainParams(request.sessionCreateParams);
  const asked = { functionId, versionId, params, sessionCreateParams: over };
  const idempotency = idempotencyKey(request.idempotencyKey, asked);
  // Checked first: by now a newer version may have another schema, or the queue be full.
  const earlier =
    idempotency && (await store.findIdempotent({ ...idempotency, projectId, at: now() }));
  if (earlier) return earlier;
  const made = await askedInvocation(options, asked, caller);
  const expiresAt = made.at + KEY_KEPT_MS;
  return store.acceptInvocation({
    ...made,
    ...(idempotency && { idempotency: { ...idempotency, expiresAt } }),
  });
}

/** Checks it as a request. Throws INVALID_FIELD, RESOURCE_NOT_FOUND and QUOTA_EXCEEDED. */
export async function askedInvocation(
  deps: InvocationDeps,
  { functionId, versionId, params: given, sessionCreateParams: over }: Asked,
  starter: Starter,
): Promise<NewInvocation> {
  const { store, validator, quotas, waitMs } = deps;
  const { projectId } = starter;
  // beside the read of the version: one wait for the store
  const withinQuota = quotas.checkResults(projectId);
  withinQuota.catch(() => {}); // a missing function is reported first
  const version = await findVersion(store, { functionId, versionId, projectId });
  await withinQuota;
  const session = sessionParams(version, over);
  await checkPatterns(deps, projectId, { session, prefix: 'sessionCreateParams' });
  const params = JSON.stringify(await validator.params(version, given));
  const timeoutMs = Number(session['timeout'] ?? INVOCATION_TIMEOUT_DEFAULT_S) * 1_000;
  const wanted = { functionId, versionId: version.id, params, session, timeoutMs, waitMs };
  return newInvocation(deps, wanted, starter);
}

/** The function's newest version, or the requested one. */
export async function findVersion(
  store: Pick<Store, 'newestVersion' | 'getVersion'>,
  wanted: { functionId: string; versionId: string | undefined; projectId: string },
): Promise<VersionRow> {
  const { functionId, versionId: id, projectId } = wanted;
  if (id === undefined) {
    const newest = await store.newestVersion({ functionId, projectId });
    return orNotFound(newest, 'Function', functionId);
  }
  const named = await store.getVersion({ id, projectId });
  if (named?.functionId !== functionId) throw notFound('Version', id);
  return named;
}

/** The invocation when it has ended, or its current state when the wait is over. */
async function ended(
  { store, closing }: Options,
  { id, projectId }: Pick<InvocationRow, 'id' | 'projectId'>,
  { call, waitMs }: { call: Call; waitMs: number },
): Promise<InvocationRow> {
  // its function may be deleted meanwhile
  const look = async () =>
    orNotFound(await store.getInvocation({ id, projectId }), 'Invocation', id);
  const row = await longPoll(store, `invocation:${id}`, look, {
    call,
    closing,
    waitMs,
    maxMs: INVOCATION_WAIT_MAX_S * 1_000,
    isDone: ({ endedAt }) => endedAt !== null,
  });
  throwIfOver(call);
  return row;
}

/** The size is checked before the text is parsed. */
export function givenParams({
  params = {},
  paramsJson,
}: Pick<InvokeFunctionRequest, 'params' | 'paramsJson'>): SessionParams {
  const json = paramsJson ?? JSON.stringify(params);
  if (Buffer.byteLength(json) > PARAMS_MAX_BYTES) {
    throw invalidField('params', `must be at most ${PARAMS_MAX_BYTES} bytes of JSON.`);
  }
  const problem = paramsJson === undefined ? undefined : jsonProblem(json, PARAMS_DEPTH_MAX);
  const given: unknown = problem === undefined ? JSON.parse(json) : undefined;
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    return given as SessionParams;
  }
  throw invalidField('params', 'must be an object.');
}

/** The function's sessionConfig, overridden by the invocation's sessionCreateParams. */
function sessionParams(version: VersionRow, over: SessionParams): SessionParams {
  const base = plainConfig(JSON.parse(version.sessionConfig ?? '{}')) as SessionParams;
  const session = merged(base, over);
  const wrong = problemOf(session);
  if (wrong) throw invalidField(`sessionCreateParams${wrong.path}`, wrong.problem);
  return session;
}
