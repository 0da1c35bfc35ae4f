/**
 * Sessions created by users: PENDING -> RUNNING -> COMPLETED | TIMED_OUT | ERROR. A session and its
 * queue entry are written in one store operation; a runner leases it and reports when Chrome is
 * ready. Sessions of invocations are read here and changed by their invocation.
 */

import { traceparentIn } from '../../proto/common/tracing.ts';
import type {
  CreateSessionRequest,
  Session,
  SessionServiceService,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll, waitUntil } from '../api/long-poll.ts';
import { isId, newId, pathId } from '../common/ids.ts';
import type { ListedSession, NewUserSession, SessionRow } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';
import { plainParams, sessionProblem } from '../validation/session-params.ts';
import type { Validator } from '../validation/validator.ts';
import { withIgnored } from './ignored-members.ts';
import { parseQuery } from './metadata-query.ts';
import type { SessionSecrets } from './proxy-secrets.ts';
import type { SigningKeys } from './signing-keys.ts';

/** The list has no pages (proto/spec/rest.md 2). Ours: newest first, and not without end. */
const LISTED_MAX = 1_000;
/** Source: proto/spec/sessions.md 1. */
const REGION_DEFAULT = 'us-west-2';
/** Ours: how long a session may wait for a runner. Its creator was answered long before. */
const PATIENCE_MS = 60_000;
/** Ours: the answer is sent when Chrome is ready, or within the time of one request without it. */
const READY_WAIT_MS = 25_000;

export type SessionOptions = {
  store: Store;
  signingKeys: SigningKeys;
  secrets: SessionSecrets;
  validator: Validator;
  now: () => number;
  /** Aborts when core closes: waiting calls are answered at once. */
  closing: AbortSignal;
};

/** The rest of the service is read from files of their own: logs, recordings, live view. */
export type SessionMethods = Pick<
  typeof SessionServiceService,
  'createSession' | 'listSessions' | 'getSession' | 'updateSession' | 'deleteSession'
>;

export function sessionService(options: SessionOptions): Service<SessionMethods, ProjectCaller> {
  const { store, signingKeys } = options;
  const find = sessionFinder(store);
  const shown = (row: SessionRow, { keyId }: ProjectCaller) =>
    toProto(row, takesClients(row) ? signingKeys.of(row.id, keyId) : undefined);

  return {
    async createSession({ projectId: given, ...request }, caller) {
      const { projectId, call } = caller;
      checkProject(given, projectId);
      const created = await store.createSession(await wanted(options, request, caller));
      const { id } = created;
      try {
        return { session: shown(await ready(options, created, call), caller) };
      } catch (error) {
        // Unknown to its client, or failed: it must not use a slot.
        await store.releaseSession({ id, projectId, at: options.now() });
        throw error;
      }
    },

    async listSessions({ status, q }, { projectId }) {
      const metadata = q === undefined ? undefined : parseQuery(q);
      const rows = await store.listSessions({ projectId, status, metadata, max: LISTED_MAX });
      return { sessions: rows.map((row) => toProto(row)) };
    },

    async getSession({ id }, caller) {
      return { session: shown(await find(id, caller), caller) };
    },

    async updateSession({ id, status, projectId }, caller) {
      checkProject(projectId, caller.projectId);
      if (status !== 'REQUEST_RELEASE') throw invalidField('status', 'must be REQUEST_RELEASE.');
      return { session: shown(await release(options, id, caller), caller) };
    },

    async deleteSession({ id }, caller) {
      await release(options, id, caller);
      return {};
    },
  };
}

export type FindSession = (id: string, caller: { projectId: string }) => Promise<SessionRow>;

/**
 * A session of the project. Throws INVALID_FIELD for text that is not a UUID, else
 * RESOURCE_NOT_FOUND.
 */
export function sessionFinder(store: Pick<Store, 'getSession'>): FindSession {
  return async (text, { projectId }) => {
    const id = pathId('id', text);
    const row = await store.getSession({ id, projectId });
    if (!row) throw notFound('Session', id);
    return row;
  };
}

async function release(
  { store, now }: SessionOptions,
  text: string,
  { projectId }: ProjectCaller,
): Promise<SessionRow> {
  const id = pathId('id', text);
  const released = await store.releaseSession({ id, projectId, at: now() });
  if (!released) throw notFound('Session', id);
  if (released.outcome === 'released') return released.session;
  throw new Fault('SESSION_OF_INVOCATION', 'This session ends with its invocation.', { id });
}

/** The session to store: validated, with defaults. */
async function wanted(
  { store, secrets, validator, now }: SessionOptions,
  request: Omit<CreateSessionRequest, 'projectId'>,
  { projectId, call }: ProjectCaller,
): Promise<NewUserSession> {
  const params = plainParams(request);
  const wrong = sessionProblem(params) ?? (await validator.patterns(projectId, params));
  if (wrong) throw invalidField(wrong.path.slice(1) || 'body', wrong.problem);
  const { browserSettings, userMetadata, timeout, region = REGION_DEFAULT } = request;
  const contextId = browserSettings?.context?.id.toLowerCase() ?? null;
  const extensionId = (request.extensionId ?? browserSettings?.extensionId)?.toLowerCase() ?? null;
  await Promise.all([
    contextId === null || findOwn('Context', contextId, store.getContext, projectId),
    extensionId === null || findOwn('Extension', extensionId, store.getExtension, projectId),
  ]);
  const [at, id] = [now(), newId()];
  return {
    id,
    projectId,
    region,
    contextId,
    extensionId,
    at,
    waitUntil: at + PATIENCE_MS,
    keepAlive: request.keepAlive ?? false,
    userMetadata: userMetadata === undefined ? null : JSON.stringify(userMetadata),
    params: secrets.seal(withIgnored(params, call), id),
    timeoutMs: timeout === undefined ? undefined : timeout * 1_000,
    traceparent: traceparentIn(call.metadata),
  };
}

async function findOwn(
  type: 'Context' | 'Extension',
  id: string,
  get: (wanted: { id: string; projectId: string }) => Promise<object | undefined>,
  projectId: string,
): Promise<void> {
  const row = isId(id) ? await get({ id, projectId }) : undefined;
  if (!row) throw notFound(type, id);
}

/**
 * When Chrome is ready, or the current state after the wait: a connection then waits for Chrome.
 */
async function ready(
  { store, closing }: SessionOptions,
  created: SessionRow,
  call: Call,
): Promise<SessionRow> {
  const { id, projectId } = created;
  const look = async () => (await store.getSession({ id, projectId })) ?? created;
  const row = await longPoll(store, 'sessions', look, {
    until: waitUntil(call, READY_WAIT_MS),
    isDone: ({ status }) => status !== 'PENDING',
    signal: AbortSignal.any([call.signal, closing]),
  });
  if (row.status === 'ERROR') {
    const why = (row.endReason || 'its runner gave no reason').replace(/\.$/, '');
    throw new Fault('BROWSER_FAILED', `The session did not start: ${why}.`, { id });
  }
  throwIfOver(call);
  return row;
}

function checkProject(given: string | undefined, projectId: string): void {
  if (given === undefined || given === projectId) return;
  throw new Fault('PROJECT_MISMATCH', 'This API key cannot access the given project.', {
    projectId: given,
  });
}

function takesClients({ status, isReleased }: SessionRow): boolean {
  return (status === 'PENDING' || status === 'RUNNING') && !isReleased;
}

/** With the URLs that drive it, where it has some. The gateway adds the origin. */
function toProto(row: ListedSession, signingKey?: string): Session {
  return {
    id: row.id,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    projectId: row.projectId,
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : new Date(row.endedAt),
    expiresAt: new Date(row.expiresAt),
    status: row.status,
    proxyBytes: row.proxyBytes,
    keepAlive: row.keepAlive,
    contextId: row.contextId ?? undefined,
    region: row.region,
    userMetadata: row.userMetadata === null ? undefined : JSON.parse(row.userMetadata),
    connectUrl: signingKey === undefined ? undefined : `/connect?signingKey=${signingKey}`,
    seleniumRemoteUrl: signingKey === undefined ? undefined : '/webdriver',
    signingKey,
    endReason: row.endReason || undefined,
  };
}
