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
import { must } from '../../proto/common/must.ts';
import { traceparentIn } from '../../proto/common/tracing.ts';
import type {
  InvocationServiceService,
  InvokeFunctionRequest,
} from '../../proto/gen/tabern/v1/invocations.pb.ts';
import { jsonProblem } from '../../proto/json/json-scan.ts';
import { invalidField, notFound } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll, waitUntil } from '../api/long-poll.ts';
import { readOffsets } from '../api/pagination.ts';
import { isId, newId, pathId } from '../common/ids.ts';
import { extensionOf, findExtension } from '../files/extensions.ts';
import type { Quotas } from '../projects/quotas.ts';
import { withIgnored } from '../sessions/ignored-members.ts';
import type { SessionSecrets } from '../sessions/proxy-secrets.ts';
import type { VersionRow } from '../store/types/functions.ts';
import type { InvocationRow } from '../store/types/invocations.ts';
import type { Store } from '../store/types.ts';
import {
  merged,
  plainConfig,
  plainParams,
  problemOf,
  type SessionParams,
} from '../validation/session-params.ts';
import type { Validator } from '../validation/validator.ts';
import { logToProto } from './functions.ts';
import { idempotencyKey, KEY_KEPT_MS } from './idempotency.ts';
import { invocationToProto } from './invocation-view.ts';
import { jsonOf } from './json-values.ts';

/** Levels of nesting. Ours: the limit of REST is lower. */
const PARAMS_DEPTH_MAX = 100;
/** The only region of functions. Source: proto/spec/functions.md 1. */
const REGION = 'us-west-2';

export type InvocationOptions = {
  store: Store;
  now: () => number;
  validator: Validator;
  secrets: SessionSecrets;
  quotas: Pick<Quotas, 'checkRoom'>;
  /** Limit of pending invocations of a project. */
  queueMax: number;
  /** How long an invocation may wait for a runner. */
  waitMs: number;
  /** Aborts when core closes: waiting calls are answered at once. */
  closing: AbortSignal;
};

export function invocationService(
  options: InvocationOptions,
): Service<typeof InvocationServiceService, ProjectCaller> {
  const { store, now } = options;

  async function find(text: string, projectId: string): Promise<InvocationRow> {
    const id = pathId('id', text);
    const row = await store.getInvocation({ id, projectId });
    if (!row) throw notFound('Invocation', id);
    return row;
  }

  return {
    /** Accepts one invocation and answers at once; a runner leases it. */
    async invokeFunction(request, caller) {
      const row = await accept(options, request, caller);
      return { invocation: invocationToProto(row, jsonOf(caller.call)) };
    },

    async getInvocation({ id, wait = 0 }, { projectId, call }) {
      if (wait > INVOCATION_WAIT_MAX_S)
        throw invalidField('wait', `must be 0 to ${INVOCATION_WAIT_MAX_S}.`);
      const row = await find(id, projectId);
      const isOver = wait === 0 || row.endedAt !== null;
      const latest = isOver ? row : await ended(options, row, { call, waitMs: wait * 1_000 });
      return { invocation: invocationToProto(latest, jsonOf(call)) };
    },

    async cancelInvocation({ id: text }, { projectId, call }) {
      const id = pathId('id', text);
      const row = await store.cancelInvocation({ id, projectId, at: now() });
      if (!row) throw notFound('Invocation', id);
      return { invocation: invocationToProto(row, jsonOf(call)) };
    },

    async listInvocations(request, { projectId, call }) {
      const versionId = pathId('versionId', request.versionId);
      const filter = { versionId, projectId, status: request.status, ...readOffsets(request) };
      const [version, { rows, total }] = await Promise.all([
        store.getVersion({ id: versionId, projectId }),
        store.listInvocations(filter),
      ]);
      if (!version) throw notFound('Version', versionId);
      const show = jsonOf(call);
      const results = fitting(rows).map(({ row, hasParams }) => ({
        ...invocationToProto(row, show),
        ...(hasParams ? {} : { params: undefined, paramsJson: undefined }),
      }));
      return { results, total };
    },

    async listInvocationLogs({ id }, { projectId }) {
      const invocation = await find(id, projectId);
      const lines = await store.listLogs(invocation.id);
      return { logs: lines.map(logToProto), total: lines.length };
    },
  };
}

/** Creates an invocation, or returns that of a known idempotency key. */
async function accept(
  { store, now, validator, secrets, quotas, queueMax, waitMs }: InvocationOptions,
  request: InvokeFunctionRequest,
  { projectId, call }: ProjectCaller,
): Promise<InvocationRow> {
  const functionId = pathId('functionId', request.functionId);
  const named = request.versionId;
  const versionId = named === undefined ? undefined : pathId('versionId', named);
  const given = givenParams(request);
  const over = plainParams(request.sessionCreateParams);
  const asked = { functionId, versionId, params: given, sessionCreateParams: over };
  const idempotency = idempotencyKey(request.idempotencyKey, asked);
  // Checked first: a newer version may have another schema, and the queue or a quota may be full by
  // now.
  const earlier =
    idempotency && (await store.findIdempotent({ ...idempotency, projectId, at: now() }));
  if (earlier) return earlier;
  await quotas.checkRoom(projectId, 'RESULT');
  const version = await findVersion(store, { functionId, versionId, projectId });
  const session = sessionParams(version, over);
  const wrong = await validator.patterns(projectId, session);
  if (wrong) throw invalidField(`sessionCreateParams${wrong.path}`, wrong.problem);
  const params = await validator.params(version, given);
  const contextId = contextOf(session);
  if (contextId !== null) await findContext(store, { id: contextId, projectId });
  const extensionId = extensionOf(session);
  if (extensionId !== null) await findExtension(store, { id: extensionId, projectId });
  const [at, sessionId] = [now(), newId()];
  return store.acceptInvocation({
    id: newId(),
    sessionId,
    projectId,
    functionId,
    versionId: version.id,
    region: REGION,
    contextId,
    queueMax,
    at,
    waitUntil: at + waitMs,
    params: JSON.stringify(params),
    sessionParams: secrets.seal(withIgnored(session, call), sessionId),
    userMetadata: jsonOrNull(session['userMetadata']),
    timeoutMs: Number(session['timeout'] ?? INVOCATION_TIMEOUT_DEFAULT_S) * 1_000,
    ...(idempotency && { idempotency: { ...idempotency, expiresAt: at + KEY_KEPT_MS } }),
    traceparent: traceparentIn(call.metadata),
  });
}

/** The function's newest version, or the requested one. */
async function findVersion(
  store: Store,
  wanted: { functionId: string; versionId: string | undefined; projectId: string },
): Promise<VersionRow> {
  const { functionId, versionId: id, projectId } = wanted;
  if (id === undefined) {
    const newest = await store.newestVersion({ functionId, projectId });
    if (!newest) throw notFound('Function', functionId);
    return newest;
  }
  const named = await store.getVersion({ id, projectId });
  if (named?.functionId !== functionId) throw notFound('Version', id);
  return named;
}

/** The invocation when it has ended, or its current state when the wait is over. */
async function ended(
  { store, closing }: InvocationOptions,
  { id, projectId }: InvocationRow,
  { call, waitMs }: { call: Call; waitMs: number },
): Promise<InvocationRow> {
  const look = async () =>
    must(await store.getInvocation({ id, projectId }), 'invocation just read');
  const row = await longPoll(store, `invocation:${id}`, look, {
    until: waitUntil(call, waitMs, INVOCATION_WAIT_MAX_S * 1_000),
    isDone: ({ endedAt }) => endedAt !== null,
    signal: AbortSignal.any([call.signal, closing]),
  });
  throwIfOver(call);
  return row;
}

/** The size is checked before the text is parsed. */
function givenParams({ params = {}, paramsJson }: InvokeFunctionRequest): SessionParams {
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

/** problemOf has validated the shape. In lower case, like stored ids. */
function contextOf(session: SessionParams): string | null {
  const { context } = (session['browserSettings'] ?? {}) as { context?: { id: string } };
  return context?.id.toLowerCase() ?? null;
}

async function findContext(store: Store, wanted: { id: string; projectId: string }): Promise<void> {
  const row = isId(wanted.id) ? await store.getContext(wanted) : undefined;
  if (!row) throw notFound('Context', wanted.id);
}

function jsonOrNull(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** Maximum bytes on the wire per byte of JSON: `1,` becomes eleven. */
export const WIRE_PER_JSON = 5.5;
/** In bytes of JSON, of a page. Ours: on the wire it stays below 16 MiB. */
export const PAGE_MAX_BYTES = 2.5 * 1024 * 1024;

/** What a page shows of each invocation; results are omitted first, because GET returns them. */
export type Shown = { row: InvocationRow; hasParams: boolean };

/**
 * The rows in their order, without values beyond the limit: results are omitted first, then params.
 */
export function fitting(rows: readonly InvocationRow[]): Shown[] {
  let left = PAGE_MAX_BYTES;
  const takes = (json: string): boolean => {
    const bytes = Buffer.byteLength(json);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  return rows.map((row) => {
    const hasParams = takes(row.params);
    const hasResults = row.results !== null && takes(row.results);
    return { row: hasResults ? row : { ...row, results: null }, hasParams };
  });
}
