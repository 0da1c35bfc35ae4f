/**
 * One client of a relay: its WebSocket, its root session in Chrome, and the sessions below it.
 *   open -> left (by either side, once); then all of its sessions are detached
 */
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { Log } from '../../proto/log.ts';
import { OWN_IDS, TAIL_BYTES } from './pipe.ts';
import { type Command, police } from './police.ts';
import type { Relayed } from './relay.ts';

/** Above the first, Chrome is no longer read; below the second it is again. */
const BEHIND_BYTES = 16 << 20;
const CAUGHT_UP_BYTES = 4 << 20;
/** A client that stalls stalls the others of its session: so long and no longer. */
const STALL_MS = 30_000;
/** A close that is not answered. */
const CLOSE_TIMEOUT_MS = 2_000;

/** As Chrome says them. */
const INVALID_REQUEST = -32600;
const NO_SESSION = -32001;
const REFUSED = -32000;

const ATTACHED = Buffer.from('{"method":"Target.attachedToTarget"');
const DETACHED = Buffer.from('{"method":"Target.detachedFromTarget"');

export type RelayClient = {
  close(code: number, reason: string): void;
  /** Settles when the client is gone and its sessions are on their way out; never rejects. */
  left: Promise<void>;
  /** That passed so far, either way. */
  readonly messages: number;
};

export function openClient(options: {
  socket: WebSocket;
  /** Under it. */
  raw: Duplex;
  rootId: string;
  chrome: Relayed;
  log: Log;
}): RelayClient {
  const { socket, raw, rootId, chrome, log } = options;
  const { pipe, paths } = chrome;
  const me = {};
  const owned = new Set<string>();
  /**
   * `session id` of attachToBrowserTarget calls on their way: only the answer names the new
   * session.
   */
  const attaching = new Set<string>();
  const beat = { ...paths, owns: (id: string) => owned.has(id) };
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  let stall: NodeJS.Timeout | undefined;
  let messages = 0;

  const own = (id: string): void => {
    owned.add(id);
    pipe.claim(id, (raw) => fromChrome(id, raw));
  };
  const disown = (id: string): void => {
    owned.delete(id);
    pipe.release(id);
  };
  const flushed = (): void => {
    if (stall === undefined || socket.bufferedAmount >= CAUGHT_UP_BYTES) return;
    clearTimeout(stall);
    stall = undefined;
    pipe.resume(me);
  };
  const send = (message: Buffer | string): void => {
    messages += 1;
    socket.send(message, { binary: false }, flushed);
    if (stall !== undefined || socket.bufferedAmount <= BEHIND_BYTES) return;
    pipe.pause(me);
    stall = setTimeout(() => {
      log.warn('a client does not read: dropped');
      socket.terminate();
    }, STALL_MS);
  };
  const fromChrome = (id: string, raw: Buffer): void => {
    watchSessions(raw, { id, attaching, own, disown });
    if (id !== rootId) send(raw);
    else send(Buffer.concat([raw.subarray(0, raw.length - TAIL_BYTES), Buffer.from('}')]));
  };
  const answer = (command: Partial<Command>, body: object): void => {
    const { id, sessionId } = command;
    send(JSON.stringify({ id, ...body, ...(sessionId === undefined ? {} : { sessionId }) }));
  };
  const fail = (command: Partial<Command>, code: number, message: string): void => {
    answer(command, { error: { code, message } });
  };
  const fromClient = (text: string): void => {
    messages += 1;
    const command = parseCommand(text);
    if (command === undefined) {
      fail({}, INVALID_REQUEST, 'a message is a JSON object with an integer id and a method');
      return;
    }
    const { sessionId = rootId } = command;
    if (!owned.has(sessionId)) {
      fail(command, NO_SESSION, 'Session with given id not found.');
      return;
    }
    const verdict = police(command, beat);
    switch (verdict.kind) {
      case 'refuse':
        fail(command, REFUSED, verdict.why);
        return;
      case 'leave':
        answer(command, { result: {} });
        close(socket, 1000, 'Browser.close');
        return;
      case 'allow':
      case 'rewritten': {
        const { method } = command;
        if (method === 'Target.attachToBrowserTarget') attaching.add(`${sessionId} ${command.id}`);
        const passed = verdict.kind === 'allow' ? command : verdict.command;
        if (pipe.write(JSON.stringify({ ...passed, sessionId }))) return;
        socket.pause();
        void pipe.drained().then(() => socket.resume());
      }
    }
  };

  own(rootId);
  socket.on('message', (bytes: RawData) => fromClient(bytes.toString()));
  // too long a message, a broken frame: ws closes with its code
  socket.on('error', () => socket.terminate());
  socket.on('close', () => {
    clearTimeout(stall);
    pipe.resume(me);
    for (const id of [...owned]) disown(id);
    // its children go with it; rejects only when Chrome is gone
    pipe.call('Target.detachFromTarget', { sessionId: rootId }).catch(() => undefined);
    leave();
  });
  return {
    left,
    get messages() {
      return messages;
    },
    close: (code, reason) => close(socket, code, reason),
  };
}

type Watch = {
  id: string;
  attaching: Set<string>;
  own(id: string): void;
  disown(id: string): void;
};

/** Learns of sessions that come and go; parses those few messages only. */
function watchSessions(raw: Buffer, { id, attaching, own, disown }: Watch): void {
  if (startsWith(raw, ATTACHED)) own(sessionIn(raw, 'params'));
  else if (startsWith(raw, DETACHED)) disown(sessionIn(raw, 'params'));
  else if (attaching.size > 0) {
    const call = /^\{"id":(\d+),"result"/.exec(raw.toString('latin1', 0, 40))?.[1];
    if (call !== undefined && attaching.delete(`${id} ${call}`)) own(sessionIn(raw, 'result'));
  }
}

function startsWith(raw: Buffer, head: Buffer): boolean {
  return raw.length >= head.length && raw.compare(head, 0, head.length, 0, head.length) === 0;
}

function sessionIn(raw: Buffer, member: 'params' | 'result'): string {
  const message = JSON.parse(raw.toString()) as Record<string, { sessionId?: unknown }>;
  return String(message[member]?.sessionId);
}

function parseCommand(text: string): Command | undefined {
  const parsed = parseJson(text);
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { id, method, params, sessionId } = parsed as Record<string, unknown>;
  if (!Number.isInteger(id) || Math.abs(Number(id)) >= OWN_IDS) return undefined;
  if (typeof method !== 'string') return undefined;
  if (params !== undefined && (typeof params !== 'object' || params === null)) return undefined;
  if (sessionId !== undefined && typeof sessionId !== 'string') return undefined;
  return {
    id: id as number,
    method,
    ...(params === undefined ? {} : { params: params as Record<string, unknown> }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // said to the client as an invalid request
  }
}

function close(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason);
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
}
