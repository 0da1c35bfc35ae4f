/**
 * What is new to a client: sessions that come and go below its own, and browser contexts that it
 * has made. Only the few messages that tell of them are parsed. Pure, but for what it remembers.
 */
import type { Command } from './police.ts';

const ATTACHED = Buffer.from('{"method":"Target.attachedToTarget"');
const DETACHED = Buffer.from('{"method":"Target.detachedFromTarget"');
const ATTACH = 'Target.attachToBrowserTarget';
const CREATE = 'Target.createBrowserContext';
/** Of Chrome's answers, which begin with the number. */
const ANSWER = /^\{"id":(-?\d+),"(result|error)"/;
const ANSWER_HEAD_BYTES = 40;

export type TargetInfo = { targetId: string; type: string };

export type Watcher = {
  own(id: string, parent: string, target: TargetInfo | undefined): void;
  disown(id: string): void;
  /** `call`: as `sent` gave it. Undefined: Chrome has refused. */
  made(browserContextId: string | undefined, call: string): void;
};

export type Watch = {
  /** Chrome has said this on a session of the client. */
  heard(raw: Buffer, cdpSessionId: string): void;
  /** The client has said this on a session of its own. Gives a name for this call. */
  sent(command: Command, cdpSessionId: string): string;
  /** Commands whose answer has not come. */
  readonly awaited: number;
};

export function watcher({ own, disown, made }: Watcher): Watch {
  /** Method by `session id` of calls on their way: only the answer names what is new. */
  const awaited = new Map<string, string>();
  const answered = (raw: Buffer, id: string): void => {
    const [, call, outcome] = ANSWER.exec(raw.toString('latin1', 0, ANSWER_HEAD_BYTES)) ?? [];
    const name = `${id} ${call}`;
    const method = awaited.get(name);
    if (method === undefined) return;
    awaited.delete(name);
    if (outcome === 'error') {
      if (method === CREATE) made(undefined, name);
      return;
    }
    const { sessionId, browserContextId } = membersOf(raw, 'result');
    if (method === ATTACH) own(String(sessionId), id, undefined);
    else made(String(browserContextId), name);
  };
  return {
    heard(raw, id) {
      if (startsWith(raw, ATTACHED)) {
        const { sessionId, targetInfo } = membersOf(raw, 'params');
        own(String(sessionId), id, targetInfo as TargetInfo | undefined);
      } else if (startsWith(raw, DETACHED)) {
        disown(String(membersOf(raw, 'params')['sessionId']));
      } else if (awaited.size > 0) answered(raw, id);
    },
    sent({ id, method }, sessionId) {
      const name = `${sessionId} ${id}`;
      if (method === ATTACH || method === CREATE) awaited.set(name, method);
      return name;
    },
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
