/**
 * Lets several clients drive one Chrome. Each client has a browser session of its own
 * (Target.attachToBrowserTarget), created before its upgrade is answered, so a client that sends at
 * once loses nothing. Client messages are parsed, checked (command-policy.ts) and encoded anew;
 * Chrome's messages are forwarded unchanged to the session's client. A client sees only the
 * sessions below its own; they are detached when it disconnects.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import { ORIGIN_HEADER } from '../../../proto/network/origin-header.ts';
import { lossReason } from '../../browser/launch.ts';
import type { SessionHandoffs } from '../handoffs.ts';
import type { ProtocolRecorder } from '../log/recorder.ts';
import { refuse } from '../refusal.ts';
import { openClient, type RelayClient } from './client.ts';
import { handoffCommands, type Peer } from './handoff-commands.ts';
import { type IdleOptions, watchIdle } from './idle-timeout.ts';
import type { RelayedChrome } from './relayed-chrome.ts';
import { browserRoot, type Root, targetRoot } from './roots.ts';

/**
 * From a client. Ours: Chrome's pipe takes a request of 50 MB, but never answers one of 100 MB;
 * Playwright sends uploads in parts.
 */
const COMMAND_MAX_BYTES = 16 << 20;
/** Close code of a message that is too long. RFC 6455 7.4.1. */
const TOO_BIG = 1009;
/** Stands for no close frame at all. RFC 6455 7.4.1. */
const NO_CLOSE_FRAME = 1006;
/** Ours: an agent, a live view and a debugger at once are three. */
const CLIENTS_MAX = 32;
const TOO_MANY = `The session has ${CLIENTS_MAX} connections, its most. Close one, then try again.`;

export type Relay = {
  /** Serves one upgrade that the caller has authorised. */
  serve(request: IncomingMessage, socket: Duplex, head: Buffer, targetId?: string): void;
  readonly clients: number;
  /** Closes every client with a WebSocket close code and refuses new ones. */
  close(code: number, reason: string): void;
};

type UpgradeRequest = { request: IncomingMessage; socket: Duplex; head: Buffer };

export type RelayOptions = Pick<IdleOptions, 'idleMs'> & {
  log: Log;
  /** Of the session, for its clients; absent: they cannot ask for any. */
  handoffs?: SessionHandoffs | undefined;
  /**
   * Called with the number of clients when one connects or disconnects. `isBroken`: its connection
   * ended without a close frame.
   */
  onClients?: ((clients: number, isBroken: boolean) => void) | undefined;
  /** Records the protocol log; absent: no log is kept. */
  recorder?: ProtocolRecorder | undefined;
};

export function openRelay(chrome: RelayedChrome, options: RelayOptions): Relay {
  const { log, idleMs, onClients, recorder, handoffs } = options;
  const isHeld = () => handoffs?.pending !== undefined;
  const { pipe } = chrome;
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false, // 25 times the CPU for nothing on a loopback
    maxPayload: COMMAND_MAX_BYTES,
    WebSocket: RelaySocket,
  });
  const clients = new Set<RelayClient>();
  let ended: { code: number; reason: string } | undefined;
  let connecting = 0;
  const root = (): Promise<Root> => browserRoot(pipe);
  /** The first client's root session, created before the client connects. */
  let preparedRoot: Promise<Root> | undefined = root();
  preparedRoot.catch(() => undefined); // the client's own attempt tries again

  const close = (code: number, reason: string): void => {
    ended ??= { code, reason };
    for (const client of clients) client.close(code, reason);
  };
  const addClient = (socket: WebSocket, wire: Duplex, root: Root, peer: Peer): void => {
    const ours = handoffs && handoffCommands(handoffs, peer);
    const client = openClient({ socket, wire, root, chrome, log, recorder, ours });
    void root.closed?.then(() => client.close(1000, 'the target has closed'));
    clients.add(client);
    watchIdle(socket, client, { idleMs, isHeld });
    onClients?.(clients.size, false);
    let isBroken = false;
    socket.once('close', (code) => {
      isBroken = code === NO_CLOSE_FRAME;
    });
    void client.closed.then(() => {
      clients.delete(client);
      onClients?.(clients.size, isBroken);
    });
    if (ended) client.close(ended.code, ended.reason);
  };
  const takeBrowserRoot = (): Promise<Root> => {
    const made = preparedRoot?.catch(root) ?? root();
    preparedRoot = undefined;
    return made;
  };
  const attach = async (
    { request, socket, head }: UpgradeRequest,
    targetId: string | undefined,
  ): Promise<void> => {
    const root = await (targetId === undefined ? takeBrowserRoot() : targetRoot(pipe, targetId));
    if (root === undefined) {
      refuse(socket, 404, `No such target id: ${targetId}`);
      return;
    }
    if (socket.destroyed) {
      root.end();
      return;
    }
    let isUpgraded = false;
    socket.once('close', () => !isUpgraded && root.end());
    server.handleUpgrade(request, socket, head, (webSocket) => {
      isUpgraded = true;
      // a gateway that shuts down closes its half: the client gets the reason before ws closes ours
      socket.prependOnceListener('end', () => webSocket.close(1001, 'the gateway is ending'));
      addClient(webSocket, socket, root, peerOf(request));
    });
  };
  void pipe.closed.then(() => {
    close(1011, chrome.exitReason() === undefined ? 'the browser has ended' : lossReason(chrome));
  });

  return {
    close,
    get clients() {
      return clients.size;
    },
    serve(request, socket, head, targetId) {
      socket.on('error', () => socket.destroy());
      if (ended || clients.size + connecting >= CLIENTS_MAX) {
        if (ended) refuse(socket, 410, 'The session has ended.');
        else refuse(socket, 429, TOO_MANY);
        return;
      }
      connecting += 1;
      attach({ request, socket, head }, targetId)
        .catch((error: unknown) => {
          log.warn({ error: String(error) }, 'cannot attach a client');
          refuse(socket, 502, 'The browser could not be reached.');
        })
        .finally(() => {
          connecting -= 1;
        });
    },
  };
}

/** As the gateway has described it, which core has authorised. */
function peerOf({ url = '/', headers }: IncomingMessage): Peer {
  const origin = headers[ORIGIN_HEADER];
  const keyId = URL.parse(url, 'ws://runner')?.searchParams.get('apiKeyId') ?? '';
  return { origin: typeof origin === 'string' ? origin : '', keyId };
}

/** ws closes a message that is too long without giving a reason. */
class RelaySocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    const why = code === TOO_BIG ? `a message of more than ${COMMAND_MAX_BYTES >> 20} MiB` : '';
    super.close(code, reason ?? why);
  }
}
