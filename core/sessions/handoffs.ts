/**
 * Handoffs: a session's user asks a person to do something in its browser. The link is a live view
 * of this session alone, and a credential: it needs no API key and ends with the handoff.
 */

import { INSTRUCTIONS_MAX_CHARS } from '../../proto/common/limits.ts';
import type { Handoff, HandoffServiceService } from '../../proto/gen/tabern/v1/handoffs.pb.ts';
import type { RunnerServiceService } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import { dateOf } from '../api/answers.ts';
import { inRange, leaseLost, orNotFound } from '../api/checks.ts';
import type { MachineCaller, ProjectCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { newId, pathId } from '../common/ids.ts';
import type { HandoffRow } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';
import { runningSession, type ViewTokens } from './live-view.ts';

/** Ours, in seconds: a session's longest time. */
const TIMEOUT = { min: 10, max: 21_600, unit: ' seconds' };
const TIMEOUT_S = 600;
/** In seconds, as of other reads that wait. */
const WAIT = { max: 60, unit: ' seconds' };
/** Ours, of one session. */
const HANDOFFS_MAX = 100;

type Options = {
  store: Store;
  tokens: Pick<ViewTokens, 'of'>;
  now: () => number;
  closing: AbortSignal;
};
/** `keyId`: of the key with which the link ends. */
type Wanted = { sessionId: string; instructions: string; timeout?: number | undefined };

export function handoffService(
  options: Options,
): Service<typeof HandoffServiceService, ProjectCaller> {
  const { store, now, closing } = options;
  const keyOf = (request: { sessionId: string; id: string }, { projectId }: ProjectCaller) => ({
    sessionId: pathId('sessionId', request.sessionId),
    id: pathId('id', request.id),
    projectId,
  });
  const shown = (row: HandoffRow | undefined, id: string) => ({
    handoff: toProto(options, orNotFound(row, 'Handoff', id)),
  });

  async function end(
    request: { sessionId: string; id: string },
    caller: ProjectCaller,
    status: 'COMPLETED' | 'CANCELLED',
  ) {
    const wanted = { ...keyOf(request, caller), status, at: now() };
    return shown(await store.endHandoff(wanted), request.id);
  }

  return {
    async createHandoff({ sessionId: text, ...asked }, { projectId, keyId }) {
      const sessionId = pathId('sessionId', text);
      const row = await request(options, { ...asked, sessionId }, { projectId, keyId });
      return { handoff: toProto(options, row) };
    },
    async listHandoffs({ sessionId: text }, { projectId }) {
      const id = pathId('sessionId', text);
      orNotFound(await store.getSession({ id, projectId }), 'Session', id);
      const wanted = { sessionId: id, projectId, max: HANDOFFS_MAX };
      const rows = await store.listHandoffs(wanted);
      return { handoffs: rows.map((row) => toProto(options, row)) };
    },
    async getHandoff({ wait = 0, ...named }, caller) {
      inRange('wait', wait, WAIT);
      const { call } = caller;
      const key = keyOf(named, caller);
      const look = () => store.getHandoff(key);
      const isDone = (row: HandoffRow | undefined) => row?.status !== 'PENDING';
      const waiting = { call, closing, waitMs: wait * 1_000, maxMs: WAIT.max * 1_000, isDone };
      const row = await longPoll(store, `handoff:${key.id}`, look, waiting);
      throwIfOver(call);
      return shown(row, named.id);
    },
    completeHandoff: (named, caller) => end(named, caller, 'COMPLETED'),
    cancelHandoff: (named, caller) => end(named, caller, 'CANCELLED'),
  };
}

type OfRunners = Pick<
  typeof RunnerServiceService,
  'awaitHandoffs' | 'requestHandoff' | 'linkLiveView' | 'finishHandoff'
>;

/** For the runners of the sessions: what their clients and viewers ask, and what they must know. */
export function leasedHandoffs(options: Options): Service<OfRunners, MachineCaller> {
  const { store, now, closing } = options;

  async function sessionOf(leaseId: string) {
    const found = await store.sessionOfLease(leaseId);
    if (!found) throw leaseLost(leaseId);
    return found;
  }

  return {
    async awaitHandoffs({ knownIds, waitMs, ...holder }, { call }) {
      const known = new Set(knownIds);
      const isDone = (rows: readonly { id: string }[]) =>
        rows.length !== known.size || rows.some(({ id }) => !known.has(id));
      const look = () => store.leasedHandoffs(holder);
      const waiting = { call, closing, waitMs, isDone };
      const handoffs = await longPoll(store, 'handoffs', look, waiting);
      throwIfOver(call);
      return { handoffs, ended: await store.endedHandoffs(knownIds) };
    },
    async requestHandoff({ leaseId, keyId, ...asked }) {
      const { sessionId, projectId } = await sessionOf(leaseId);
      const row = await request(options, { ...asked, sessionId }, { projectId, keyId });
      return { id: row.id, url: handoffLink(options, row) };
    },
    async linkLiveView({ leaseId, keyId }) {
      const { sessionId, projectId } = await sessionOf(leaseId);
      const { expiresAt } = await runningSession(store, { id: sessionId, projectId });
      return { url: linkOf(options, { sessionId, expiresAt, keyId }) };
    },
    async finishHandoff({ leaseId, id }) {
      const session = await sessionOf(leaseId);
      await store.endHandoff({ ...session, id, status: 'COMPLETED', at: now() });
      return {};
    },
  };
}

/** Stores a handoff of a running session. */
async function request(
  { store, now }: Options,
  { sessionId, instructions, timeout = TIMEOUT_S }: Wanted,
  { projectId, keyId = '' }: { projectId: string; keyId?: string | undefined },
): Promise<HandoffRow> {
  if (instructions.trim() === '' || instructions.length > INSTRUCTIONS_MAX_CHARS) {
    throw invalidField('instructions', `must be 1 to ${INSTRUCTIONS_MAX_CHARS} characters.`);
  }
  inRange('timeout', timeout, TIMEOUT);
  const at = now();
  const moment = { at, expiresAt: at + timeout * 1_000 };
  const wanted = { id: newId(), projectId, sessionId, instructions, keyId, ...moment };
  const row = await store.createHandoff(wanted, HANDOFFS_MAX);
  if (row) return row;
  await runningSession(store, { id: sessionId, projectId }); // throws why it does not run
  throw new Fault('SESSION_ENDED', 'The session is ending.');
}

/** With a handoff, the link ends with it. */
function linkOf(
  { tokens }: Options,
  {
    expiresAt,
    ...view
  }: { expiresAt: number; sessionId: string; keyId: string; handoffId?: string },
): string {
  return `/live?token=${tokens.of({ ...view, expiresAt: new Date(expiresAt) })}`;
}

function handoffLink(options: Options, { id, sessionId, expiresAt, keyId }: HandoffRow): string {
  return linkOf(options, { handoffId: id, sessionId, expiresAt, keyId });
}

function toProto(options: Options, row: HandoffRow): Handoff {
  const { id, sessionId, projectId, instructions, createdAt, expiresAt, endedAt } = row;
  return {
    id,
    sessionId,
    projectId,
    status: row.status,
    instructions,
    createdAt: new Date(createdAt),
    expiresAt: new Date(expiresAt),
    endedAt: dateOf(endedAt),
    url: row.status === 'PENDING' ? handoffLink(options, row) : undefined,
  };
}
