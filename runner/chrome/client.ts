/**
 * One client of a relay: its WebSocket, its root session in Chrome, and the sessions below it.
 *   open -> left (by either side, once); then all of its sessions are detached
 */
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { Log } from '../../proto/log.ts';
import { parseCommand } from './commands.ts';
import { type TargetInfo, watcher } from './newcomers.ts';
import { openOutbox } from './outbox.ts';
import { openPages } from './pages.ts';
import { MESSAGE_MAX_BYTES, TAIL_BYTES } from './pipe.ts';
import { type Command, police } from './police.ts';
import type { Relayed } from './relay.ts';
import type { Tap, TappedSession } from './tap.ts';

/** A close that is not answered. */
const CLOSE_TIMEOUT_MS = 2_000;

/** As Chrome says them. */
const INVALID_REQUEST = -32600;
const NO_SESSION = -32001;
const REFUSED = -32000;

const NO_COMMAND = 'a message is a JSON object with an integer id and a method, 300 levels at most';
const CLOSING_BRACE = 0x7d;
const TOO_LONG = `Chrome said more than ${MESSAGE_MAX_BYTES >> 20} MiB at once`;

export type RelayClient = {
  close(code: number, reason: string): void;
  /** Settles when the client is gone and its sessions are on their way out; never rejects. */
  left: Promise<void>;
  /** That passed so far, either way. */
  readonly messages: number;
};

export type ClientOptions = {
  socket: WebSocket;
  /** What the socket writes to. */
  wire: Duplex;
  rootId: string;
  chrome: Relayed;
  log: Log;
  /** Keeps the protocol log; absent: nobody does. */
  tap?: Tap | undefined;
};

/** A session of the client; its log when one is kept; what it is a session of. */
type Owned = { tapped: TappedSession | undefined; targetId?: string | undefined };

export function openClient(options: ClientOptions): RelayClient {
  const { socket, wire, rootId, chrome, log, tap } = options;
  const { pipe, paths } = chrome;
  const outbox = openOutbox({ socket, wire, pipe, log });
  const owned = new Map<string, Owned>();
  const beat = { ...paths, owns: (id: string) => owned.has(id) };
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  let messages = 0;

  const say = (message: Buffer, { tapped }: Owned): void => {
    messages += 1;
    outbox.send(message);
    tapped?.said(message, Date.now());
  };
  const own = (id: string, pageId = 0, targetId?: string): void => {
    const session: Owned = { tapped: tap?.session(pageId), targetId };
    owned.set(id, session);
    const receive = (raw: Buffer): void => {
      watch.heard(raw, id);
      say(id === rootId ? withoutTail(raw) : raw, session);
    };
    pipe.claim(id, receive, () => end(1009, TOO_LONG));
  };
  const disown = (id: string): void => {
    owned.get(id)?.tapped?.end();
    owned.delete(id);
    pipe.release(id);
  };
  const watch = watcher({
    own: (id, parent, target) =>
      own(id, tap && pageOf(tap, target, owned.get(parent)), target?.targetId),
    disown,
    // before the client hears of it: what it says about downloads itself comes after this
    made: (browserContextId) => void keepDownloads(chrome, browserContextId),
  });
  const end = (code: number, reason: string): void => {
    outbox.flush();
    socket.close(code, reason);
    endSoon(socket);
  };
  const answer = (command: Partial<Command>, body: object, session: Owned): void => {
    const { id, sessionId } = command;
    const whole = { id, ...body, ...(sessionId === undefined ? {} : { sessionId }) };
    say(Buffer.from(JSON.stringify(whole)), session);
  };
  const fail = (command: Partial<Command>, code: number, message: string, of?: Owned): void => {
    answer(command, { error: { code, message } }, of ?? { tapped: undefined });
  };
  const fromClient = (text: string): void => {
    messages += 1;
    const command = parseCommand(text);
    if (command === undefined) {
      fail({}, INVALID_REQUEST, NO_COMMAND);
      return;
    }
    const { sessionId = rootId } = command;
    const session = owned.get(sessionId);
    if (session === undefined) {
      fail(command, NO_SESSION, 'Session with given id not found.');
      return;
    }
    session.tapped?.command(command, text, Date.now());
    const verdict = police(command, beat);
    switch (verdict.kind) {
      case 'refuse':
        fail(command, REFUSED, verdict.why, session);
        return;
      case 'leave':
        answer(command, { result: {} }, session);
        end(1000, 'Browser.close');
        return;
      case 'allow':
      case 'rewritten': {
        watch.sent(command, sessionId);
        tellFront(chrome, command, session);
        const passed = verdict.kind === 'allow' ? command : verdict.command;
        if (pipe.write(JSON.stringify({ ...passed, sessionId }))) return;
        socket.pause();
        void pipe.drained().then(() => socket.resume());
      }
    }
  };

  own(rootId);
  socket.on('message', (bytes: RawData) => {
    // one that has been told to go drives nothing any more, whatever it still says
    if (socket.readyState === socket.OPEN) fromClient(bytes.toString());
  });
  // too long a message, a broken frame: ws says so with its code, and the client may hear it
  socket.on('error', () => endSoon(socket));
  socket.on('close', () => {
    outbox[Symbol.dispose]();
    for (const id of [...owned.keys()]) disown(id);
    // its children go with it; rejects only when Chrome is gone
    pipe.call('Target.detachFromTarget', { sessionId: rootId }).catch(() => undefined);
    void keepAllDownloads(chrome);
    leave();
  });
  return {
    left,
    get messages() {
      return messages;
    },
    close: end,
  };
}

/** Chrome forgets what a client that leaves had said of downloads, and keeps none from then on. */
async function keepAllDownloads(chrome: Relayed): Promise<void> {
  void keepDownloads(chrome);
  // rejects when Chrome is gone
  const { browserContextIds } = await chrome.pipe
    .call('Target.getBrowserContexts')
    .catch(() => ({ browserContextIds: [] }));
  for (const id of browserContextIds as string[]) void keepDownloads(chrome, id);
}

/** Of the default context when none is named. */
async function keepDownloads({ pipe, paths }: Relayed, browserContextId?: string): Promise<void> {
  const behavior = { behavior: 'allowAndName', downloadPath: paths.downloads };
  const params = { ...behavior, eventsEnabled: true, browserContextId };
  // rejects when the context or Chrome is gone, which is as good
  await pipe.call('Browser.setDownloadBehavior', params).catch(() => undefined);
}

/** Which page its user now looks at: Chrome tells nobody else. */
function tellFront(chrome: Relayed, { method, params }: Command, { targetId }: Owned): void {
  const isHere = method === 'Page.bringToFront';
  if (!isHere && method !== 'Target.activateTarget') return;
  const front = isHere ? targetId : params?.['targetId'];
  // rejects when Chrome is gone
  openPages(chrome).then(
    (pages) => pages.activate(String(front)),
    () => undefined,
  );
}

/** Frames and workers belong to the page above them; what stands above all pages counts as 0. */
function pageOf(tap: Tap, target: TargetInfo | undefined, parent: Owned | undefined): number {
  if (target?.type === 'page') return tap.pageIdOf(target.targetId);
  return target === undefined ? 0 : (parent?.tapped?.pageId ?? 0);
}

/** The client knows no session id of its root. The message is nobody else's, so no copy is made. */
function withoutTail(raw: Buffer): Buffer {
  const end = raw.length - TAIL_BYTES;
  raw[end] = CLOSING_BRACE;
  return raw.subarray(0, end + 1);
}

function endSoon(socket: WebSocket): void {
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
}
