/**
 * Tracks what a client creates: CDP sessions that attach and detach below its own, and browser
 * contexts. Only the few messages about them are parsed. Pure, except for its state.
 */
import type { Command } from '../../browser/cdp/command-policy.ts';
import { startsWith } from '../../browser/cdp/split.ts';

const ATTACHED = Buffer.from('{"method":"Target.attachedToTarget"');
const DETACHED = Buffer.from('{"method":"Target.detachedFromTarget"');
const ATTACH = 'Target.attachToBrowserTarget';
const CREATE = 'Target.createBrowserContext';
/** The head of Chrome's responses, which begin with the id. */
const ANSWER = /^\{"id":(-?\d+),"(result|error)"/;
const ANSWER_HEAD_BYTES = 40;

type Call = { method: string; cdpSessionId: string };

export type TargetInfo = { targetId: string; type: string };

type SessionListener = {
  onAttached(id: string, parent: string, target: TargetInfo | undefined): void;
  onDetached(id: string): void;
  /** `call`: the id sent to Chrome. Undefined: creation failed, or no response will arrive. */
  onContextCreated(browserContextId: string | undefined, call: number): void;
};

type SessionTracker = {
  /** A message from Chrome on a session of the client. */
  onMessage(raw: Buffer, cdpSessionId: string): void;
  /** A command of the client on one of its sessions; the id is unique to this command. */
  onCommand(command: Pick<Command, 'id' | 'method'>, cdpSessionId: string): void;
  /** The session has ended; its pending commands get no response. */
  onSessionEnd(cdpSessionId: string): void;
  /** Chrome knew no session for the command with that id. */
  onUnknownSession(id: number): void;
  /** Number of commands without a response. */
  readonly pending: number;
};

export function openSessionTracker({
  onAttached,
  onDetached,
  onContextCreated,
}: SessionListener): SessionTracker {
  /** Pending commands: only the response names what they created. */
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

function membersOf(raw: Buffer, member: 'params' | 'result'): Record<string, unknown> {
  const message = JSON.parse(raw.toString()) as Record<string, Record<string, unknown>>;
  return message[member] ?? {};
}
