/**
 * One client of a relay: its connection, its root session in Chrome, and the sessions below it.
 *   open -> closed (by either side, once); then all its sessions are detached
 */
import type { Log } from '../../../proto/common/log.ts';
import { type Command, decide, needsParams } from '../../browser/cdp/command-policy.ts';
import { pageOverrides } from '../../browser/cdp/page-overrides.ts';
import { resizes } from '../../browser/cdp/resizes.ts';
import { MESSAGE_MAX_BYTES, TAIL_BYTES } from '../../browser/cdp/split.ts';
import { restoreNetErrors } from '../../jail/egress/net-errors.ts';
import type { ProtocolRecorder, SessionRecorder } from '../log/recorder.ts';
import { type ErrorBody, encodeCommand, type Message, paramsOf, readMessage } from './commands.ts';
import type { Connection } from './connection.ts';
import { type HandoffCommands, isHandoffCommand } from './handoff-commands.ts';
import { PENDING_MAX, type PendingCommand, PendingCommands } from './pending-commands.ts';
import {
  type RelayedChrome,
  reportActivePage,
  resetDownloadBehavior,
  setDownloadBehavior,
} from './relayed-chrome.ts';
import type { Root } from './roots.ts';
import { openSessionTracker, type TargetInfo } from './session-tracker.ts';

/** Chrome's error for a command on an unknown session. The response carries no session id. */
const NO_SESSION: ErrorBody = { code: -32001, message: 'Session with given id not found.' };
const REFUSED = -32000;
/** RFC 6455 7.4.1. */
const FAILED = 1011;
/** RFC 6455 7.4.1. Chrome drops a client that sends a binary message, without a close frame. */
const UNSUPPORTED = 1003;

const CLOSING_BRACE = 0x7d;
const NEVER_ANSWERED = `Chrome answers none of ${PENDING_MAX} commands: this is among the oldest`;
const TOO_LONG = `Chrome said more than ${MESSAGE_MAX_BYTES >> 20} MiB at once`;

export type RelayClient = {
  close(code: number, reason: string): void;
  /** Settles when the client has left and its sessions are being detached. Never rejects. */
  closed: Connection['closed'];
  /** Whether a WebSocket carries its connection at the moment. */
  readonly isConnected: boolean;
  /** Messages so far, in both directions. */
  readonly messages: number;
};

type CommandId = Pick<Message, 'id' | 'sessionId'>;

type ClientOptions = {
  connection: Connection;
  root: Root;
  chrome: RelayedChrome;
  log: Log;
  /** Records the protocol log; absent: no log is kept. */
  recorder?: ProtocolRecorder | undefined;
  /** Commands of ours; absent: there are none. */
  ours?: HandoffCommands | undefined;
};

/** A CDP session of the client, its recorder when a log is kept, and its target. */
type Owned = {
  cdpSessionId: string;
  recorder: SessionRecorder | undefined;
  targetId?: string | undefined;
};

export function openClient(options: ClientOptions): RelayClient {
  const { connection, root, chrome, log, recorder, ours } = options;
  const rootId = root.sessionId;
  const { pipe, paths, proxies } = chrome;
  const { reading, closed, close: end } = connection;
  const owned = new Map<string, Owned>();
  const overrides = pageOverrides(pipe);
  const sizes = resizes(pipe);
  const pending = new PendingCommands<Owned>((one) => owned.get(one.cdpSessionId) === one);
  const warned = new Set<string>();
  let messages = 0;

  const send = (message: Buffer, to?: Owned, logged = message): void => {
    messages += 1;
    connection.send(message);
    to?.recorder?.onMessage(logged, Date.now());
  };
  const own = (id: string, pageId = 0, targetId?: string): void => {
    const session: Owned = { cdpSessionId: id, recorder: recorder?.session(pageId), targetId };
    owned.set(id, session);
    const receive = (raw: Buffer): void => {
      tracker.onMessage(raw, id);
      // restore sets the command that `answered` has
      const message = restoreNetErrors(pending.restore(raw), chrome.egress, pending.answered);
      send(id === rootId ? withoutTail(message) : message, session);
    };
    pipe.claim(id, receive, () => end(1009, TOO_LONG));
  };
  const disown = (id: string): void => {
    const session = owned.get(id);
    session?.recorder?.end();
    if (session?.targetId) {
      overrides.remove(session.targetId, session);
      sizes.remove(session.targetId, session);
    }
    owned.delete(id);
    tracker.onSessionEnd(id);
    pipe.release(id);
  };
  const tracker = openSessionTracker({
    onAttached: (id, parent, target) =>
      own(id, recorder && pageOf(recorder, target, owned.get(parent)), target?.targetId),
    onDetached: disown,
    // runs before the client receives the response: the client's own settings come later
    onContextCreated: (browserContextId, call) => {
      if (browserContextId !== undefined) void setDownloadBehavior(chrome, browserContextId);
      proxies.onCreated(browserContextId, call);
    },
  });
  /** Responds as Chrome does: with the session id of the command, when it has one. */
  const answer = (command: CommandId, body: object, to?: Owned): void => {
    send(answerOf(command, body, to), to);
  };
  /** Rejects one of the oldest pending commands; a later response of Chrome is dropped. */
  const answerLate = ({ id, session }: PendingCommand<Owned>): void => {
    const sessionId = session.cdpSessionId === rootId ? '' : session.cdpSessionId;
    answer({ id, sessionId }, { error: { code: REFUSED, message: NEVER_ANSWERED } }, session);
  };
  /** Returns the id that is sent to Chrome. */
  const pass = (message: Message, command: Command, to: Owned): number => {
    const { method, params } = command;
    const sessionId = message.sessionId || rootId;
    const id = pipe.newId();
    tracker.onCommand({ id, method }, sessionId);
    reportActivePage(chrome, command, to.targetId);
    if (to.targetId) overrides.observe(command, to.targetId, to);
    sizes.observe(method, to.targetId, to);
    const sent = { id: message.id, session: to, navigatesTo: hostOf(command) };
    for (const tooOld of pending.add(id, sent)) answerLate(tooOld);
    const parsed = params && { params: Buffer.from(JSON.stringify(params)) };
    if (pipe.write(encodeCommand({ ...message, ...parsed, id }, sessionId))) return id;
    reading.pause(pipe);
    void pipe.drained().then(() => reading.resume(pipe));
    return id;
  };
  const onClientMessage = (text: Buffer): void => {
    messages += 1;
    const message = readMessage(text);
    if ('error' in message) {
      send(Buffer.from(JSON.stringify(message)));
      return;
    }
    const session = owned.get(message.sessionId || rootId);
    if (session === undefined) {
      answer(message, { error: NO_SESSION });
      return;
    }
    const { id, method, params } = message;
    const isParsed = needsParams(method) || isHandoffCommand(method);
    const parsed = isParsed ? paramsOf(message) : {};
    const command = 'error' in parsed ? { id, method } : { id, method, ...parsed };
    session.recorder?.onCommand(command, { text, params }, Date.now());
    if ('error' in parsed) answer(message, parsed, session);
    else apply(message, command, session);
  };
  /** Each warning is recorded once. */
  const warn = (why: string): void => {
    if (!warned.has(why)) recorder?.warn(why, Date.now());
    warned.add(why);
  };
  /** Whether the command is one of ours: it is answered later. */
  const applyOurs = (message: Message, command: Command, session: Owned): boolean => {
    const notify = (method: string, params: object): void => {
      if (owned.get(session.cdpSessionId) !== session) return;
      const on = message.sessionId === '' ? {} : { sessionId: message.sessionId };
      send(Buffer.from(JSON.stringify({ method, params, ...on })), session);
    };
    const result = ours?.(command, notify);
    void result?.then(
      ({ result, logged }) => {
        const kept = answerOf(message, { result: logged }, session);
        send(answerOf(message, { result }, session), session, kept);
      },
      (error: Error) => answer(message, refusal(error), session),
    );
    return result !== undefined;
  };
  const apply = (message: Message, command: Command, session: Owned): void => {
    if (applyOurs(message, command, session)) return;
    const decision = decide(command, { ...paths, owns: (id) => owned.has(id) });
    switch (decision.kind) {
      case 'refuse': {
        const { code = REFUSED, why, isWarned } = decision;
        if (isWarned) warn(why);
        answer(message, { error: { code, message: why } }, session);
        return;
      }
      case 'leave':
        answer(message, { result: {} }, session);
        end(1000, 'Browser.close');
        return;
      case 'allow':
        pass(message, command, session);
        return;
      case 'rewritten':
        pass(message, decision.command, session);
        return;
      case 'proxied':
        proxies
          .create(decision.route, (own) => {
            const { command: asked } = decision;
            const params = { ...asked.params, ...own };
            if (!connection.isOpen) return undefined;
            return pass(message, { ...asked, params }, session);
          })
          .catch((error: Error) => answer(message, refusal(error), session));
    }
  };
  /** Chrome found no session for a command: the session ended before Chrome read the command. */
  const unknownSession = (id: number, raw: Buffer): void => {
    const answer = pending.restoreLate(id, raw);
    if (answer === undefined) return;
    tracker.onUnknownSession(id);
    send(answer);
  };

  own(rootId, recorder && root.targetId ? recorder.pageIdOf(root.targetId) : 0, root.targetId);
  const stopListening = [pipe.onUnknownSession(unknownSession), pipe.share.add(reading)];
  const onText = (text: Buffer): void => {
    if (!connection.takes?.(text)) onClientMessage(text);
  };
  connection.onMessage((text, isBinary) => {
    // commands of a client that is being closed are ignored
    if (!connection.isOpen) return;
    if (isBinary) end(UNSUPPORTED, 'a message is text');
    else pipe.share.spend(() => isolate(() => onText(text), { log, end }));
  });
  void closed.then(() => {
    for (const stop of stopListening) stop();
    for (const id of [...owned.keys()]) disown(id);
    root.end();
    void resetDownloadBehavior(chrome);
  });
  return {
    closed,
    get isConnected() {
      return connection.isConnected;
    },
    get messages() {
      return messages;
    },
    close: end,
  };
}

function answerOf({ id, sessionId }: CommandId, body: object, to?: Owned): Buffer {
  const on = to === undefined || sessionId === '' ? {} : { sessionId };
  return Buffer.from(JSON.stringify({ id, ...body, ...on }));
}

function refusal({ message }: Error): { error: ErrorBody } {
  return { error: { code: REFUSED, message } };
}

/** Frames and workers belong to the page above them; targets above all pages count as page 0. */
function pageOf(
  recorder: ProtocolRecorder,
  target: TargetInfo | undefined,
  parent: Owned | undefined,
): number {
  if (target?.type === 'page') return recorder.pageIdOf(target.targetId);
  return target === undefined ? 0 : (parent?.recorder?.pageId ?? 0);
}

/** A fault of ours ends this client alone: the runner has other tenants. */
function isolate(handle: () => void, { log, end }: { log: Log; end: RelayClient['close'] }): void {
  try {
    handle();
  } catch (error) {
    log.error({ err: error }, 'a message of a client failed');
    end(FAILED, 'the message could not be handled');
  }
}

/** The host of a navigation to an http or https address, of which a client may send 16 MiB. */
function hostOf({ method, params }: Command): string | undefined {
  const address = params?.['url'];
  if (method !== 'Page.navigate' || typeof address !== 'string') return undefined;
  return URL.parse(/^https?:[^?#]{1,300}/i.exec(address)?.[0] ?? '')?.hostname;
}

/**
 * The client does not know the session id of its root. The buffer is not shared, so it is not
 * copied.
 */
function withoutTail(raw: Buffer): Buffer {
  const end = raw.length - TAIL_BYTES;
  raw[end] = CLOSING_BRACE;
  return raw.subarray(0, end + 1);
}
