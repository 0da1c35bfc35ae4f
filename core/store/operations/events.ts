/**
 * The outbox: an event and one delivery for each subscribed webhook, written in the transaction
 * that changes the resource's status. A crash leaves both or neither. For a disabled webhook the
 * delivery is `skipped` from the start, so that it can be sent later. Nothing is written when no
 * webhook is subscribed and no client polls the project's events (`tabern listen`).
 */
import { newId } from '../../common/ids.ts';
import { BODY_MAX_BYTES, type Event, envelope } from '../../delivery/envelope.ts';
import type { DownloadRow } from '../types/files.ts';
import type { BuildRow, BuiltFunction } from '../types/functions.ts';
import type { InvocationRow } from '../types/invocations.ts';
import type { Timed } from '../types/rows.ts';
import type { HandoffRow, ListedSession } from '../types/sessions.ts';
import type { Read, Steps, Transaction } from './steps.ts';

export type EventStatements = {
  /** Webhooks of the project that subscribe to the type; at most 100. */
  subscribed(
    projectId: string,
    type: string,
  ): Read<{ id: string; status: 'enabled' | 'disabled' }[]>;
  hasListener(projectId: string, at: number): Read<boolean>;
  /**
   * The event and its deliveries, `pending` or `skipped`. False and nothing when the resource has
   * an event of that type already.
   */
  insert(event: EventRow, deliveries: readonly NewDelivery[]): Read<boolean>;
  /** Counts for the console. */
  countSkipped(webhookId: string, at: number): void;
  /** The webhook has a delivery that is due at `at`. */
  setDue(webhookId: string, at: number): void;
};

export type NewDelivery = { webhookId: string; state: 'pending' | 'skipped' };

/** `body`: its envelope. */
export type EventRow = Omit<Event, 'data'> & { body: Buffer };

export type NewEvent = Omit<Event, 'id'>;

/** Writes the event. A second event of the same type for the same resource is ignored. */
export function* emitEvent(events: EventStatements, tx: Transaction, event: NewEvent): Steps<void> {
  const receivers = yield* receiversOf(events, event);
  if (receivers === undefined) return;
  if (yield* insertEvent(events, event, receivers)) notify(events, tx, event, receivers);
}

/**
 * As `emitEvent`, for the transition of a resource, which it makes once. The event is made where
 * somebody receives it; undefined for none.
 */
export function* emitTransition(
  events: EventStatements,
  tx: Transaction,
  moment: Pick<NewEvent, 'type' | 'projectId' | 'at'>,
  eventOf: () => Steps<NewEvent | undefined>,
): Steps<void> {
  const receivers = yield* receiversOf(events, moment);
  const event = receivers && (yield* eventOf());
  if (!event) return;
  insertEvent(events, event, receivers);
  notify(events, tx, event, receivers);
}

type Receivers = { deliveries: NewDelivery[]; hasListener: boolean };

/** Undefined when nobody receives events of the type. */
function* receiversOf(
  events: EventStatements,
  { type, projectId, at }: Pick<NewEvent, 'type' | 'projectId' | 'at'>,
): Steps<Receivers | undefined> {
  const [subscribed, listening] = [
    events.subscribed(projectId, type),
    events.hasListener(projectId, at),
  ];
  const webhooks = yield* subscribed;
  const hasListener = yield* listening;
  if (webhooks.length === 0 && !hasListener) return undefined;
  const deliveries = webhooks.map(({ id, status }): NewDelivery => {
    return { webhookId: id, state: status === 'enabled' ? 'pending' : 'skipped' };
  });
  return { deliveries, hasListener };
}

function insertEvent(
  events: EventStatements,
  event: NewEvent,
  { deliveries }: Receivers,
): Read<boolean> {
  const id = newId();
  return events.insert({ ...event, id, body: envelope({ ...event, id }) }, deliveries);
}

/** After the event was written. */
function notify(
  events: EventStatements,
  tx: Transaction,
  { projectId, at }: NewEvent,
  { deliveries, hasListener }: Receivers,
): void {
  if (hasListener) tx.wake(`events:${projectId}`);
  for (const { webhookId, state } of deliveries) {
    if (state === 'pending') events.setDue(webhookId, at);
    else events.countSkipped(webhookId, at);
  }
  if (deliveries.some(({ state }) => state === 'pending')) tx.wake('deliveries');
}

type InvocationStep = 'pending' | 'running' | 'completed' | 'failed';

export function invocationType(step: InvocationStep): string {
  return `functions.invocations.${step}`;
}

/** The invocation as GET returns it, without its params and logs. */
export function invocationEvent(
  step: InvocationStep,
  row: Omit<InvocationRow, 'params'> & { params?: string },
): NewEvent {
  const { id, projectId, params: _, timeoutMs: __, results, cause, ...shown } = row;
  const { scheduleId, scheduledFor, ...rest } = shown;
  const data: Record<string, unknown> = { id, ...rest, ...timesOf(row) };
  // Results that exceed the envelope are passed as the beginning of their text, which the envelope
  // cuts: parsing or copying megabytes here would block all operations.
  if (step === 'completed') data['results'] = results === null ? null : parsedIfShort(results);
  if (cause !== null) data['cause'] = JSON.parse(cause);
  if (scheduleId !== null && scheduledFor !== null) {
    data['trigger'] = { type: 'schedule', scheduleId, scheduledFor: iso(scheduledFor) };
  }
  const type = invocationType(step);
  return { type, resourceId: id, projectId, data, at: row.updatedAt };
}

/** The build as GET returns it. There is no event for PENDING (proto/spec/webhooks.md 11). */
export function buildEvent(
  step: 'running' | 'completed' | 'failed',
  row: BuildRow,
  built: BuiltFunction[],
): NewEvent {
  const { id, projectId, entrypoint, status, cause } = row;
  const request = { entrypoint };
  const data: Record<string, unknown> = { id, projectId, request, status, ...timesOf(row) };
  if (cause !== null) data['cause'] = JSON.parse(cause);
  if (step === 'completed') {
    data['builtFunctions'] = built.map(({ function: { id, name }, version }) => ({
      id,
      name,
      createdVersion: { id: version.id, functionId: id, functionBuildId: version.buildId },
    }));
  }
  const type = `functions.builds.${step}`;
  return { type, resourceId: id, projectId, data, at: row.updatedAt };
}

/** The session as GET returns it, without what connects to it. */
export function sessionEvent(step: 'created' | 'running' | 'ended', row: ListedSession): NewEvent {
  const { id, projectId, userMetadata, ...rest } = row;
  const metadata = userMetadata === null ? {} : { userMetadata: JSON.parse(userMetadata) };
  const data = { id, projectId, ...present(rest), ...metadata, ...timesOf(row) };
  return { type: `sessions.${step}`, resourceId: id, projectId, data, at: row.updatedAt };
}

/** The session has ended, and each recorded page has its whole video. */
export function recordingEvent(wanted: { sessionId: string; projectId: string; at: number }) {
  const { sessionId, projectId, at } = wanted;
  const type = 'sessions.recording.ready';
  return { type, resourceId: sessionId, projectId, data: { sessionId }, at };
}

/** A file that a page has downloaded can be read. */
export function downloadEvent(row: Omit<DownloadRow, 'blobId'>): NewEvent {
  const { id, projectId, createdAt, ...rest } = row;
  const data = { id, projectId, ...rest, createdAt: iso(createdAt) };
  return { type: 'sessions.download.ready', resourceId: id, projectId, data, at: createdAt };
}

/** A person is asked for help in the session, or it has ended. */
export function handoffEvent(
  step: 'requested' | 'completed' | 'expired',
  { id, projectId, sessionId, status, instructions, ...row }: HandoffRow,
): NewEvent {
  const { createdAt, expiresAt, endedAt } = row;
  const times = { createdAt: iso(createdAt), expiresAt: iso(expiresAt) };
  const end = endedAt === null ? {} : { endedAt: iso(endedAt) };
  const data = { id, projectId, sessionId, status, instructions, ...times, ...end };
  const type = `sessions.handoff.${step}`;
  return { type, resourceId: id, projectId, data, at: endedAt ?? createdAt };
}

/** Without null members. */
function present(row: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

function timesOf(row: Timed) {
  return {
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    startedAt: iso(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : iso(row.endedAt),
    expiresAt: iso(row.expiresAt),
  };
}

function parsedIfShort(json: string): unknown {
  return json.length > BODY_MAX_BYTES ? json.slice(0, BODY_MAX_BYTES + 1) : JSON.parse(json);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
