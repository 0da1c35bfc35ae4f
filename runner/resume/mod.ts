/**
 * A connection to a session that survives the loss of its WebSocket (proto/spec/resume.md): for
 * Puppeteer as a transport, for Playwright over a port of this machine.
 *   connected <-> reconnecting -> closed, once
 */
import { Numbering } from './numbering.ts';

/** Close codes: RFC 6455 7.4.1; 1012 is IANA's for a service that restarts. */
const NORMAL = 1000;
const NO_CLOSE_FRAME = 1006;
const RESTART = 1012;
/** From here on they are those of the specification, which refuse to resume. */
const REFUSED_MIN = 4400;
/** HTTP statuses with which the session or its key is gone. */
const GONE = [401, 403, 404, 410];
/** As long as the service waits for the browser of a new session. */
const ATTEMPT_MS = 35_000;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** Without a message for this time, the service is asked for one; then the WebSocket is lost. */
const SILENCE_MS = 15_000;
/** Of commands that the service has not acknowledged. Ours. */
const KEPT_MAX_CHARS = 64 << 20;

/** The part of a WebSocket that is used: that of browsers, of Node 22, or of the package ws. */
type Socket = {
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
};

export type ResumableOptions = {
  /** The class for the WebSockets; the global one when absent. */
  WebSocket?: new (
    url: string,
  ) => unknown;
};

/** Also a transport for `puppeteer.connect({ transport })`. */
export type Resumable = {
  send(message: string): void;
  /** Leaves the session. */
  close(): void;
  onmessage?: (message: string) => void;
  /** Called once when it is closed, with the reason. */
  onclose?: (reason?: string) => void;
  /**
   * Opens a port of 127.0.0.1 for one client, and returns its address, for
   * `chromium.connectOverCDP`. Needs Node.
   */
  listen(): Promise<string>;
};

/** The service refuses to resume. */
class Refused extends Error {}

/** `url`: the session's `connectUrl`. Rejects when the first connection cannot be opened. */
export async function resumable(url: string, options: ResumableOptions = {}): Promise<Resumable> {
  const Socket = (options.WebSocket ?? globalThis.WebSocket) as new (url: string) => Socket;
  if (Socket === undefined) throw new Error('There is no WebSocket: pass one of the package ws.');
  const numbering = new Numbering();
  let current: Socket | undefined;
  let token = 'new';
  let resumeMs = 0;
  let isOver = false;
  let silent = 0;

  const acknowledge = (): void => current?.send(numbering.acknowledgement());
  const finish = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    clearInterval(watching);
    current = undefined;
    connection.onclose?.(reason);
  };
  const receive = (text: string): void => {
    silent = 0;
    if (!numbering.receive(text)) return;
    if (numbering.isDue) acknowledge();
    connection.onmessage?.(text);
  };
  const lost = (code: number, reason: string): void => {
    current = undefined;
    if (code === NO_CLOSE_FRAME || code === RESTART) void reconnect();
    else finish(reason || `closed with ${code}`);
  };
  /** The first message of a WebSocket; then the commands that the service has not received. */
  const begin = (socket: Socket, text: string): void => {
    const { method, params } = JSON.parse(text);
    if (method === 'Tabern.resumable') ({ token, resumeMs } = params);
    else if (method === 'Tabern.resumed') numbering.acknowledge(params.received);
    else throw new Refused('The service resumes no connections.');
    if (isOver) {
      socket.close(NORMAL);
      return;
    }
    current = socket;
    silent = 0;
    socket.onmessage = ({ data }) => receive(String(data));
    socket.onclose = ({ code, reason }) => lost(code, reason);
    for (const command of numbering.commands) socket.send(command);
  };
  const attempt = (received?: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const target = addressOf(url, 'ws');
      target.searchParams.set('resume', token);
      if (received !== undefined) target.searchParams.set('received', String(received));
      const socket = new Socket(target.href);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        drop(socket);
        reject(error);
      };
      const timer = setTimeout(() => fail(new Error('no answer')), ATTEMPT_MS);
      socket.onerror = () => {}; // the close follows
      socket.onclose = ({ code, reason }) =>
        fail(
          code >= REFUSED_MIN ? new Refused(reason) : new Error(reason || `closed with ${code}`),
        );
      socket.onmessage = ({ data }) => {
        clearTimeout(timer);
        try {
          begin(socket, String(data));
          resolve();
        } catch (error) {
          fail(error as Error);
        }
      };
    });
  const reconnect = async (): Promise<void> => {
    const until = performance.now() + resumeMs;
    for (let waitMs = BACKOFF_MIN_MS; !isOver; waitMs = Math.min(2 * waitMs, BACKOFF_MAX_MS)) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * waitMs));
      const error = await attempt(numbering.received).then(
        () => undefined,
        (error: Error) => error,
      );
      if (error === undefined) return;
      const why = error instanceof Refused ? error.message : await goneReason(url);
      if (why !== undefined) finish(why);
      else if (performance.now() > until) finish('the connection could not be resumed');
    }
  };
  /** A WebSocket whose peer has vanished does not close by itself for a long time. */
  const watching = setInterval(() => {
    if (current === undefined) return;
    silent += 1;
    if (silent === 2) acknowledge();
    if (silent < 4) return;
    drop(current);
    lost(NO_CLOSE_FRAME, '');
  }, SILENCE_MS / 2);
  const connection: Resumable = {
    send(message) {
      if (isOver) return;
      numbering.send(message);
      if (numbering.keptChars > KEPT_MAX_CHARS) {
        current?.close(NORMAL);
        finish('more than 64 MiB of commands wait for the service');
        return;
      }
      current?.send(message);
      if (numbering.isDue) acknowledge();
    },
    close() {
      current?.close(NORMAL);
      finish('closed');
    },
    async listen() {
      const { openPort } = await import('./local-port.ts');
      const port = await openPort({ onMessage: connection.send, onClose: connection.close });
      connection.onmessage = port.send;
      connection.onclose = (reason = '') => port.close(reason);
      return port.url;
    },
  };
  await attempt().catch(async (error: Error) => {
    finish(error.message);
    throw new Error((await goneReason(url)) ?? error.message);
  });
  return connection;
}

function addressOf(url: string, scheme: 'ws' | 'http'): URL {
  const address = new URL(url);
  address.protocol = address.protocol.replace(/^(?:ws|http)/, scheme);
  return address;
}

/** Closes a WebSocket whose further events are of no interest. */
function drop(socket: Socket): void {
  socket.onmessage = null;
  socket.onclose = null;
  socket.close();
}

/** WebSockets hide why an upgrade was refused; the same URL over HTTP is refused alike. */
async function goneReason(url: string): Promise<string | undefined> {
  const address = addressOf(url, 'http');
  address.pathname = '/json/version';
  const signal = AbortSignal.timeout(BACKOFF_MAX_MS);
  const answer = await fetch(address, { signal }).catch(() => undefined);
  if (answer === undefined || !GONE.includes(answer.status)) return undefined;
  const body = (await answer.json().catch(() => undefined)) as { message?: string } | undefined;
  return body?.message ?? `HTTP ${answer.status}`;
}
