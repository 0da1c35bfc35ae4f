/**
 * The audit: each call with a login of the console that changes something is an event with who,
 * what, where from and the outcome. The event is stored before the call begins, so no change is
 * without one; the outcome follows. It has names and ids only: no params, no texts, no secrets.
 */
import type { Log } from '../../proto/common/log.ts';
import { asFault } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { newId } from '../common/ids.ts';
import { openRate } from '../common/rate-limit.ts';
import type { Store } from '../store/types.ts';
import type { Caller } from './authentication.ts';

/** RPCs that change nothing, by their names; every other one is recorded. */
const READS = /^(?:get|list|count|search|watch|read|find)(?=[A-Z]|$)/;
/** A UUID, or the public part of an API key: no text that a person chose. */
const ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z0-9]{8})$/;
/** Of messages below an answer that are searched for an id. */
const DEPTH_MAX = 2;
const ADDRESS_MAX_CHARS = 64;
/** By the logins of one project. Ours: far more than its people make; events stay for a year. */
const CHANGES = { limit: 1_000, periodMs: 60_000, what: 'changes in the console' };

/** A call that is recorded, from its beginning. */
export type AuditEntry = { end(ended: { answer?: unknown; error?: unknown }): Promise<void> };

/**
 * Stores the event of a call; undefined for a call that is not recorded. Throws RATE_LIMIT, without
 * an event.
 */
export type Audit = (made: {
  who: Caller;
  name: string;
  request: unknown;
  call: Call;
}) => Promise<AuditEntry | undefined>;

export function isChange(rpc: string): boolean {
  return !READS.test(rpc);
}

export function openAudit(options: {
  store: Pick<Store, 'addAuditEvent' | 'endAuditEvent'>;
  now: () => number;
  log: Log;
}): Audit {
  const { store, now, log } = options;
  const changes = openRate({ ...CHANGES, now });
  return async ({ who, name: operation, request, call }) => {
    const login = 'login' in who ? who.login : undefined;
    if (login === undefined || !isChange(operation)) return undefined;
    if (who.kind === 'project' && login.kind !== 'operator') changes.take(who.projectId);
    const id = newId();
    const named = idIn(request);
    // the object of a creation is what it makes, and not the other one that its request names
    const objectId = operation.startsWith('create') ? null : named;
    const projectId = who.kind === 'project' ? who.projectId : null;
    const address = (call.metadata['x-console-address'] ?? '').slice(0, ADDRESS_MAX_CHARS);
    const by = { login: login.kind, keyId: login.keyId ?? null, address };
    await store.addAuditEvent({ id, at: now(), operation, objectId, projectId, ...by });
    return {
      /** A failure is logged: the change is made, and its event is stored. */
      async end({ answer, error }) {
        const outcome = error === undefined ? 'OK' : asFault(error).reason;
        const found = { objectId: idOf(answer) ?? named, projectId: projectOf(answer) };
        await store.endAuditEvent({ id, outcome, ...found }).catch((reason: unknown) => {
          log.error({ err: reason, auditId: id }, 'storing the outcome of an audit event failed');
        });
      },
    };
  };
}

/** The object that a request names: `id`, else the first other id. */
function idIn(request: unknown): string | null {
  if (!isMessage(request)) return null;
  const { id } = request;
  if (isId(id)) return id;
  const other = Object.entries(request).find(([name, value]) => name.endsWith('Id') && isId(value));
  return other === undefined ? null : String(other[1]);
}

/** The object of an answer: its `id`, or that of the message in it. */
function idOf(answer: unknown, depth = 0): string | null {
  if (!isMessage(answer) || depth > DEPTH_MAX) return null;
  if (isId(answer['id'])) return answer['id'];
  for (const below of Object.values(answer)) {
    const found = idOf(below, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

/** The project that the operator changed. */
function projectOf(answer: unknown): string | null {
  if (!isMessage(answer)) return null;
  const { project, apiKey } = answer;
  if (isMessage(apiKey) && isId(apiKey['projectId'])) return apiKey['projectId'];
  return project === undefined ? null : idOf(project);
}

function isMessage(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}
