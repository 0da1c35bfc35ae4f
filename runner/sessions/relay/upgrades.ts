/** Answers the upgrades of a relay: of new clients, and of those that resume their connection. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import { type Connection, openConnection } from './connection.ts';
import { endSoon } from './outbox.ts';
import type { Owner, Resumption } from './resumption.ts';

/**
 * From a client. Ours: Chrome's pipe takes a request of 50 MB, but never answers one of 100 MB;
 * Playwright sends uploads in parts.
 */
const COMMAND_MAX_BYTES = 16 << 20;
/** Close code of a message that is too long. RFC 6455 7.4.1. */
const TOO_BIG = 1009;
/** Of the answer to an upgrade with `?resume=new`: the token, which the first event has, too. */
const TOKEN_HEADER = 'X-SVC-Resume-Token';

export type UpgradeRequest = { request: IncomingMessage; socket: Duplex; head: Buffer };

/** What a client has asked for, if anything. */
export type Resume = 'new' | { token: string; received: number } | undefined;

export type Upgrades = {
  /** Answers the upgrade of a new client; `isResumable`: its connection may be resumed. */
  accept(
    upgrade: UpgradeRequest,
    client: { owner: Owner; isResumable: boolean },
    onConnection: (connection: Connection) => void,
  ): void;
  /** Refuses with a close code: WebSockets of browsers hide the answer to an upgrade. */
  resume(upgrade: UpgradeRequest, wanted: { token: string; received: number }, owner: Owner): void;
};

export function openUpgrades(options: {
  pipe: Pick<Pipe, 'pause' | 'resume'>;
  log: Log;
  resumption: Resumption;
}): Upgrades {
  const { pipe, log, resumption } = options;
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false, // 25 times the CPU for nothing on a loopback
    maxPayload: COMMAND_MAX_BYTES,
    WebSocket: RelaySocket,
  });
  const tokens = new WeakMap<IncomingMessage, string>();
  server.on('headers', (headers, request) => {
    const token = tokens.get(request);
    if (token !== undefined) headers.push(`${TOKEN_HEADER}: ${token}`);
  });
  return {
    accept({ request, socket: wire, head }, { owner, isResumable }, onConnection) {
      const token = isResumable ? resumption.newToken() : undefined;
      if (token !== undefined) tokens.set(request, token);
      server.handleUpgrade(request, wire, head, (socket) => {
        const isPlain = token === undefined;
        if (isPlain) onConnection(openConnection({ socket, wire, pipe, log }));
        else onConnection(resumption.open({ socket, wire }, token, owner));
      });
    },
    resume({ request, socket: wire, head }, wanted, owner) {
      server.handleUpgrade(request, wire, head, (socket) => {
        const refusal = resumption.resume({ socket, wire }, wanted, owner);
        if (refusal === undefined) return;
        socket.on('error', () => socket.terminate());
        socket.close(refusal.code, refusal.reason);
        endSoon(socket);
      });
    },
  };
}

export function resumeOf({ url = '/' }: IncomingMessage): Resume {
  const asked = URL.parse(url, 'ws://runner')?.searchParams;
  const token = asked?.get('resume') ?? undefined;
  if (token === undefined || token === 'new') return token;
  const received = asked?.get('received') ?? '';
  return { token, received: /^\d{1,15}$/.test(received) ? Number(received) : Number.NaN };
}

/** ws closes a message that is too long without giving a reason. */
class RelaySocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    const why = code === TOO_BIG ? `a message of more than ${COMMAND_MAX_BYTES >> 20} MiB` : '';
    super.close(code, reason ?? why);
  }
}
