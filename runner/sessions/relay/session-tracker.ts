/**
 * What is new to a client: sessions that come and go below its own, and browser contexts that it
 * has made. Only the few messages that tell of them are parsed. Pure, but for what it remembers.
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

export type Watcher = {
  own(id: string, parent: string, target: TargetInfo | undefined): void;
  disown(id: string): void;
  /** `call`: the id that Chrome got. Undefined: there is none, or nobody will hear of it. */
  made(browserContextId: string | undefined, call: number): void;
};

export type Watch = {
  /** Chrome has said this on a session of the client. */
  heard(raw: Buffer, cdpSessionId: string): void;
  /** The client has said this on a session of its own; the id is of this command alone. */
  sent(command: Pick<Command, 'id' | 'method'>, cdpSessionId: string): void;
  /** That session is the client's no more, and what it was asked has no answer. */
  ended(cdpSessionId: string): void;
  /** Chrome knew no session for the command with that id. */
  unknown(id: number): void;
  /** Commands whose answer has not come. */
  readonly awaited: number;
};

export function watcher({ own, disown, made }: Watcher): Watch {
  /** Calls on their way: only the answer names what is new. */
  const awaited = new Map<number, Call>();
  const fail = (id: number): void => {
    if (awaited.get(id)?.method === CREATE) made(undefined, id);
    awaited.delete(id);
  };
  const answered = (raw: Buffer): void => {
    const [, call, outcome] = ANSWER.exec(raw.toString('latin1', 0, ANSWER_HEAD_BYTES)) ?? [];
    const id = Number(call);
    const asked = awaited.get(id);
    if (asked === undefined) return;
    if (outcome === 'error') fail(id);
    if (!awaited.delete(id)) return;
    const { sessionId, browserContextId } = membersOf(raw, 'result');
    if (asked.method === ATTACH) own(String(sessionId), asked.cdpSessionId, undefined);
    else made(String(browserContextId), id);
  };
  return {
    heard(raw, id) {
      if (startsWith(raw, ATTACHED)) {
        const { sessionId, targetInfo } = membersOf(raw, 'params');
        own(String(sessionId), id, targetInfo as TargetInfo | undefined);
      } else if (startsWith(raw, DETACHED)) {
        disown(String(membersOf(raw, 'params')['sessionId']));
      } else if (awaited.size > 0) answered(raw);
    },
    sent({ id, method }, cdpSessionId) {
      if (method === ATTACH || method === CREATE) awaited.set(id, { method, cdpSessionId });
    },
    ended(cdpSessionId) {
      for (const [id, call] of awaited) if (call.cdpSessionId === cdpSessionId) fail(id);
    },
    unknown: fail,
    get awaited() {
      return awaited.size;
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
