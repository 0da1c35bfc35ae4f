/**
 * Sessions created by users: PENDING -> RUNNING -> COMPLETED | TIMED_OUT | ERROR. A session and its
 * queue entry are written in one store operation; a runner leases it and reports when Chrome is
 * ready. Sessions of invocations are read here and changed by their invocation.
 */

import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import { traceparentIn } from '../../proto/common/tracing.ts';
import {
  CreateSessionRequest,
  type Session,
  type SessionServiceService,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import { END_REASONS } from '../../proto/sessions/end-reasons.ts';
import { dateOf, resourceOf } from '../api/answers.ts';
import { checkProject, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { newId, pathId } from '../common/ids.ts';
import type {
  ListedSession,
  NewUserSession,
  Released,
  SessionRow,
} from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';
import { plainParams, sessionProblem } from '../validation/session-params.ts';
import type { Validator } from '../validation/validator.ts';
import { logEnd } from './ended-sessions.ts';
import { filteredLabels, LABELS_MAX, wantedLabels } from './labels.ts';
import { parseQuery } from './metadata-query.ts';
import { type SessionSecrets, withIgnored } from './proxy-secrets.ts';
import { resourcesOf } from './session-resources.ts';
import type { SigningKeys } from './signing-keys.ts';

/** The list has no pages (proto/spec/rest.md 2). Ours: newest first, and limited. */
const LISTED_MAX = 1_000;
/** Source: proto/spec/sessions.md 1. */
const REGION_DEFAULT = 'us-west-2';
/** Ours: how long a session may wait for a runner. Its creator received an answer long before. */
const QUEUE_WAIT_MS = 60_000;
/** Ours: the answer is sent when Chrome is ready, or after this wait without it. */
const READY_WAIT_MS = 25_000;
/** In milliseconds, after the beginning of a drain, for a browser that starts then. Ours. */
const STARTING_MS = 10_000;

type Options = {
  store: Store;
  signingKeys: SigningKeys;
  secrets: SessionSecrets;
  validator: Validator;
  log: Log;
  now: () => number;
  closing: AbortSignal;
  /** Aborts when no runner of this service takes new work. */
  draining: AbortSignal;
};

/** `undone`: what is still PENDING will not be started. */
type Started = Options & { undone: AbortSignal };

/** Logs, recordings and live view have files of their own. */
type SessionMethods = Pick<
  typeof SessionServiceService,
  | 'createSession'
  | 'copySession'
  | 'listSessions'
  | 'getSession'
  | 'updateSession'
  | 'setSessionLabels'
  | 'deleteSession'
>;

export function sessionService(given: Options): Service<SessionMethods, ProjectCaller> {
  const options = { ...given, undone: lateAfter(given) };
  const { store, signingKeys } = options;
  const find = sessionFinder(store);
  const shown = (row: SessionRow, { keyId }: ProjectCaller) =>
    toProto(row, takesClients(row) ? signingKeys.of(row.id, keyId) : undefined);

  return {
    async createSession({ projectId: given, ...request }, caller) {
      checkProject(given, caller.projectId);
      return { session: shown(await start(options, request, caller), caller) };
    },

    async copySession({ id }, caller) {
      const session = await find(id, caller);
      const { projectId: _, ...request } = requestOf(session, options);
      // the current ones, as a label may have been renamed or deleted
      const { labels } = session;
      return { id: (await start(options, { ...request, labels }, caller)).id };
    },

    async listSessions({ status, q, label }, { projectId }) {
      const metadata = q === undefined ? undefined : parseQuery(q);
      const labelKeys = filteredLabels(label);
      const filter = { projectId, status, metadata, labelKeys };
      const rows = await store.listSessions({ ...filter, max: LISTED_MAX });
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

    async setSessionLabels({ id: text, labels }, caller) {
      const id = pathId('id', text);
      const { projectId } = caller;
      const wanted = { id, projectId, labels: wantedLabels(labels), at: options.now() };
      const changed = await store.setSessionLabels(wanted, LABELS_MAX);
      return { session: shown(orNotFound(changed, 'Session', id), caller) };
    },

    async deleteSession({ id }, caller) {
      await release(options, id, caller);
      return {};
    },
  };
}

/**
 * A session of the project. Throws INVALID_FIELD for text that is not a UUID, else
 * RESOURCE_NOT_FOUND.
 */
export function sessionFinder(store: Pick<Store, 'getSession'>) {
  return async (text: string, { projectId }: { projectId: string }): Promise<SessionRow> => {
    const id = pathId('id', text);
    return orNotFound(await store.getSession({ id, projectId }), 'Session', id);
  };
}

/** A new session, when it is ready. One that fails, or that its client left, is released. */
async function start(
  options: Started,
  request: Omit<CreateSessionRequest, 'projectId'>,
  caller: ProjectCaller,
): Promise<SessionRow> {
  const { store, now } = options;
  const created = await store.createSession(await wanted(options, request, caller));
  const { id, projectId } = created;
  try {
    return await ready(options, created, caller.call);
  } catch (error) {
    // Unknown to its client, or failed: it must not use a slot.
    logRelease(options, await store.releaseSession({ id, projectId, at: now() }));
    throw error;
  }
}

/** The request that a session was created by; that of an invocation has those of its function. */
function requestOf(
  { id, params }: SessionRow,
  { secrets }: Pick<Options, 'secrets'>,
): CreateSessionRequest {
  return CreateSessionRequest.fromPartial(JSON.parse(secrets.open(params, id)) as object);
}

async function release(
  options: Options,
  text: string,
  { projectId }: ProjectCaller,
): Promise<SessionRow> {
  const id = pathId('id', text);
  const at = options.now();
  const found = await options.store.releaseSession({ id, projectId, at });
  const released = orNotFound(found, 'Session', id);
  logRelease(options, released);
  if (released.outcome === 'released') return released.session;
  throw new Fault('SESSION_OF_INVOCATION', 'This session ends with its invocation.', { id });
}

function logRelease({ log }: Options, released: Released | undefined): void {
  if (released?.outcome !== 'released' || !released.hasEnded) return;
  const { id } = released.session;
  logEnd(log, { id, status: 'COMPLETED', reason: END_REASONS.released });
}

/** The session to store: validated, with defaults. */
async function wanted(
  { store, secrets, validator, now }: Options,
  { labels, ...request }: Omit<CreateSessionRequest, 'projectId'>,
  { projectId, call }: ProjectCaller,
): Promise<NewUserSession> {
  const params = plainParams(request);
  const wrong = sessionProblem(params) ?? (await validator.patterns(projectId, params));
  if (wrong) throw invalidField(wrong.path.slice(1) || 'body', wrong.problem);
  const { userMetadata, timeout, region = REGION_DEFAULT } = request;
  const named = await resourcesOf(store, params, projectId);
  const [at, id] = [now(), newId()];
  return {
    ...named,
    id,
    projectId,
    region,
    at,
    labels: { wanted: wantedLabels(labels), max: LABELS_MAX },
    waitUntil: at + QUEUE_WAIT_MS,
    keepAlive: request.keepAlive ?? false,
    userMetadata: userMetadata === undefined ? null : JSON.stringify(userMetadata),
    params: secrets.seal(withIgnored(params, call), id),
    timeoutMs: timeout === undefined ? undefined : timeout * 1_000,
    traceparent: traceparentIn(call.metadata),
  };
}

/** Aborts when a browser that started at the beginning of the drain has had its time. */
function lateAfter({ draining, closing }: Pick<Options, 'draining' | 'closing'>): AbortSignal {
  const late = new AbortController();
  const begin = () => void pause(STARTING_MS, closing).then(() => late.abort());
  if (draining.aborted) begin();
  else draining.addEventListener('abort', begin, { once: true });
  return late.signal;
}

/**
 * When Chrome is ready, or the current state after the wait: a connection then waits for Chrome.
 * Throws DRAINING when no runner will start it.
 */
async function ready(
  { store, closing, undone }: Started,
  created: SessionRow,
  call: Call,
): Promise<SessionRow> {
  const { id, projectId } = created;
  const look = async () => (await store.getSession({ id, projectId })) ?? created;
  const row = await longPoll(store, 'sessions', look, {
    call,
    closing: AbortSignal.any([closing, undone]),
    waitMs: READY_WAIT_MS,
    isDone: ({ status }) => status !== 'PENDING',
  });
  if (row.status === 'PENDING' && undone.aborted) {
    const message = 'The service drains before it ends: the session did not start. Try again.';
    throw new Fault('DRAINING', message, { id });
  }
  if (row.status === 'ERROR') {
    const why = (row.endReason || 'its runner gave no reason').replace(/\.$/, '');
    throw new Fault('BROWSER_FAILED', `The session did not start: ${why}.`, { id });
  }
  throwIfOver(call);
  return row;
}

function takesClients({ status, isReleased }: SessionRow): boolean {
  return (status === 'PENDING' || status === 'RUNNING') && !isReleased;
}

/** With the URLs that drive it while it takes clients. The gateway adds the origin. */
function toProto(row: ListedSession, signingKey?: string): Session {
  return {
    ...resourceOf(row),
    startedAt: new Date(row.startedAt ?? row.createdAt),
    endedAt: dateOf(row.endedAt),
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
    labels: row.labels,
  };
}
