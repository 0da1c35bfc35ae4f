/**
 * What is new to a client: sessions that come and go below its onAttached, and browser contexts that it
 * has onContextCreated. Only the few messages that tell of them are parsed. Pure, but for what it remembers.
 */
import type { Command } from '../../browser/cdp/command-policy.ts';

const ATTACHED = Buffer.from('{"method":"Target.attachedToTarget"');
const DETACHED = Buffer.from('{"method":"Target.detachedFromTarget"');
const ATTACH = 'Target.attachToBrowserTarget';
const CREATE = 'Target.createBrowserContext';
/** Of Chrome's answers, which begin with the number. */
const ANSWER = /^\{"id":(-?\d+),"(result|error)"/;
const ANSWER_HEAD_BYTES = 40;

type Call = { method: string; cdpSessionId: string };

export type TargetInfo = { targetId: string; type: string };

export type SessionListener = {
  onAttached(id: string, parent: string, target: TargetInfo | undefined): void;
  onDetached(id: string): void;
  /** `call`: the id that Chrome got. Undefined: there is none, or nobody will hear of it. */
  onContextCreated(browserContextId: string | undefined, call: number): void;
};

export type SessionTracker = {
  /** Chrome has said this on a session of the client. */
  onMessage(raw: Buffer, cdpSessionId: string): void;
  /** The client has said this on a session of its onAttached; the id is of this command alone. */
  onCommand(command: Pick<Command, 'id' | 'method'>, cdpSessionId: string): void;
  /** That session is the client's no more, and what it was call has no answer. */
  onSessionEnd(cdpSessionId: string): void;
  /** Chrome knew no session for the command with that id. */
  onUnknownSession(id: number): void;
  /** Commands whose answer has not come. */
  readonly pending: number;
};

export function openSessionTracker({
  onAttached,
  onDetached,
  onContextCreated,
}: SessionListener): SessionTracker {
  /** Calls on their way: only the answer names what is new. */
  const pending = new Map<number, Call>();
  const fail = (id: number): void => {
    if (pending.get(id)?.method === CREATE) onContextCreated(undefined, id);
    pending.delete(id);
  };
  const onResponse = (raw: Buffer): void => {
    const [, number, outcome] = ANSWER.exec(raw.toString('latin1', 0, ANSWER_HEAD_BYTES)) ?? [];
    const id = Number(number);
    const call = pending.get(id);
    if (call === undefined) return;
    if (outcome === 'error') fail(id);
    if (!pending.delete(id)) return;
    const { sessionId, browserContextId } = membersOf(raw, 'result');
    if (call.method === ATTACH) onAttached(String(sessionId), call.cdpSessionId, undefined);
    else onContextCreated(String(browserContextId), id);
  };
  return {
    onMessage(raw, id) {
      if (startsWith(raw, ATTACHED)) {
        const { sessionId, targetInfo } = membersOf(raw, 'params');
        onAttached(String(sessionId), id, targetInfo as TargetInfo | undefined);
      } else if (startsWith(raw, DETACHED)) {
        onDetached(String(membersOf(raw, 'params')['sessionId']));
      } else if (pending.size > 0) onResponse(raw);
    },
    onCommand({ id, method }, cdpSessionId) {
      if (method === ATTACH || method === CREATE) pending.set(id, { method, cdpSessionId });
    },
    onSessionEnd(cdpSessionId) {
      for (const [id, call] of pending) if (call.cdpSessionId === cdpSessionId) fail(id);
    },
    onUnknownSession: fail,
    get pending() {
      return pending.size;
    },
  };
}

function startsWith(raw: Buffer, head: Buffer): boolean {
  return raw.length >= head.length && raw.compare(head, 0, head.length, 0, head.length) === 0;
}

function membersOf(raw: Buffer, member: 'params' | 'result'): Record<string, unknown> {
  const message = JSON.parse(raw.toString()) as Record<string, Record<string, unknown>>;
  return message[member] ?? {};
}
