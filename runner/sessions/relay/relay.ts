/**
 * Lets several clients drive one Chrome. Each client has a browser session of its own
 * (Target.attachToBrowserTarget), created before its upgrade is answered, so a client that sends at
 * once loses nothing. Client messages are parsed, checked (command-policy.ts) and encoded anew;
 * Chrome's messages are forwarded unchanged to the session's client. A client sees only the
 * sessions below its own; they are detached when it disconnects, or, when it is resumable, when it
 * has not resumed its connection in time (resumption.ts).
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Log } from '../../../proto/common/log.ts';
import { ORIGIN_HEADER } from '../../../proto/network/origin-header.ts';
import { lossReason } from '../../browser/launch.ts';
import type { SessionHandoffs } from '../handoffs.ts';
import { RESUME_MS } from '../lifetime.ts';
import type { ProtocolRecorder } from '../log/recorder.ts';
import { refuse } from '../refusal.ts';
import { openClient, type RelayClient } from './client.ts';
import type { Connection } from './connection.ts';
import { handoffCommands, type Peer } from './handoff-commands.ts';
import { type IdleOptions, watchIdle } from './idle-timeout.ts';
import type { RelayedChrome } from './relayed-chrome.ts';
import { openResumption } from './resumption.ts';
import { browserRoot, type Root, targetRoot } from './roots.ts';
import { openUpgrades, resumeOf, type UpgradeRequest } from './upgrades.ts';

/** Ours: an agent, a live view and a debugger at once are three. */
const CLIENTS_MAX = 32;
const TOO_MANY = `The session has ${CLIENTS_MAX} connections, its most. Close one, then try again.`;

export type Relay = {
  /** Serves one upgrade that the caller has authorised. */
  serve(request: IncomingMessage, socket: Duplex, head: Buffer, targetId?: string): void;
  /** Connected ones. */
  readonly clients: number;
  /** Ends the resumable clients of these API keys. Their sockets are closed by the caller. */
  revoke(keyIds: readonly string[]): void;
  /** Closes every client with a WebSocket close code and refuses new ones. */
  close(code: number, reason: string): void;
};

export type RelayOptions = Pick<IdleOptions, 'idleMs'> & {
  log: Log;
  /** Of the session, for its clients; absent: they cannot ask for any. */
  handoffs?: SessionHandoffs | undefined;
  /**
   * Called with the number of connected clients when one connects or disconnects. `lost`: its
   * connection ended without a close frame, and may be resumed when it is held.
   */
  onClients?: ((clients: number, lost?: 'broken' | 'held') => void) | undefined;
  /** How long a connection may be resumed. */
  resumeMs?: number | undefined;
  /** Records the protocol log; absent: no log is kept. */
  recorder?: ProtocolRecorder | undefined;
};

export function openRelay(chrome: RelayedChrome, options: RelayOptions): Relay {
  const { log, idleMs, onClients, recorder, handoffs, resumeMs = RESUME_MS } = options;
  const { pipe } = chrome;
  const clients = new Set<RelayClient>();
  const connected = (): number => [...clients].filter(({ isConnected }) => isConnected).length;
  const resumption = openResumption({
    pipe,
    log,
    resumeMs,
    onChange: (isConnected) => onClients?.(connected(), isConnected ? undefined : 'held'),
  });
  const upgrades = openUpgrades({ pipe, log, resumption });
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
  const addClient = (connection: Connection, root: Root, peer: Peer): void => {
    const ours = handoffs && handoffCommands(handoffs, peer);
    const client = openClient({ connection, root, chrome, log, recorder, ours });
    void root.closed?.then(() => client.close(1000, 'the target has closed'));
    clients.add(client);
    watchIdle(connection, client, { idleMs, isHeld: () => handoffs?.pending !== undefined });
    onClients?.(connected());
    void client.closed.then(({ isBroken }) => {
      clients.delete(client);
      onClients?.(connected(), isBroken ? 'broken' : undefined);
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
    // half closed: its API key was revoked meanwhile
    if (socket.destroyed || socket.writableEnded) {
      root.end();
      return;
    }
    let isUpgraded = false;
    socket.once('close', () => !isUpgraded && root.end());
    const peer = peerOf(request);
    const owner = { keyId: peer.keyId, targetId };
    const isResumable = resumeOf(request) === 'new';
    upgrades.accept({ request, socket, head }, { owner, isResumable }, (connection) => {
      isUpgraded = true;
      addClient(connection, root, peer);
    });
  };
  void pipe.closed.then(() => close(1011, lossReason(chrome)));

  return {
    close,
    revoke: resumption.revoke,
    get clients() {
      return connected();
    },
    serve(request, socket, head, targetId) {
      socket.on('error', () => socket.destroy());
      if (ended) {
        refuse(socket, 410, 'The session has ended.');
        return;
      }
      const resume = resumeOf(request);
      if (typeof resume === 'object') {
        upgrades.resume({ request, socket, head }, resume, { ...peerOf(request), targetId });
        return;
      }
      if (clients.size + connecting >= CLIENTS_MAX && !resumption.makeRoom()) {
        refuse(socket, 429, TOO_MANY);
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
