/**
 * A TLS listener in front of a server that speaks on connections: gRPC of core, HTTP of a runner's
 * session server. A client without a certificate of `clientCa` is refused in the handshake, and
 * the log has the reason. Handshakes and open connections have places of their own, each shared by
 * the addresses of the peers, so that one that opens many does not keep the others out. SIGHUP
 * reloads the files.
 */
import { once } from 'node:events';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Place } from '../common/env.ts';
import type { Log } from '../common/log.ts';
import { openShares } from '../sharing/shares.ts';
import { type PemFile, readAuthorities, readPair, type TlsFiles } from './pem-files.ts';
import { openRefusals } from './refusals.ts';
import { reloadAtHangup } from './reload.ts';

/** A handshake takes some round trips. Ours. */
const HANDSHAKE_MS = 10_000;
/**
 * Connections at the same time: those in their handshake, with some 50 KB each, and open ones.
 * Ours: a role has two connections to core, a session some clients.
 */
const PLACES = { handshakes: 1_024, open: 8_192 };
/** At the end, connections have this long to send what they have to send. Ours. */
const CLOSE_MS = 2_000;
/** Addresses of one IPv6 network, usually of one machine, count as one: the first four groups. */
const NETWORK_GROUPS = 4;

/** OpenSSL's reason. */
const NO_CERTIFICATE = 'peer did not return a certificate';

export type TlsListener = AsyncDisposable & { port: number };

type Options = {
  where: Place;
  files: TlsFiles;
  /** Clients must have a certificate of these authorities; absent: they need none. */
  clientCa?: PemFile | undefined;
  protocol: 'h2' | 'http/1.1';
  log: Log;
  /** Smaller in tests. */
  places?: typeof PLACES;
};

/** Rejects with a ConfigError for files that cannot be used, or node's error. */
export async function listenTls(
  { where, files, clientCa, protocol, log, places }: Options,
  onConnection: (socket: TLSSocket) => void,
): Promise<TlsListener> {
  const read = () => ({
    ...readPair(files),
    ...(clientCa && { ca: readAuthorities(clientCa) }),
  });
  const server = createServer({
    ...read(),
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined,
    handshakeTimeout: HANDSHAKE_MS,
    ALPNProtocols: [protocol],
  });
  const connections = openConnections(places);
  const refusals = openRefusals(log);
  server.on('connection', connections.begin);
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy());
    if (connections.open(socket)) onConnection(socket);
    else socket.destroy();
  });
  server.on('tlsClientError', (error: Error & { reason?: string }, { authorizationError }) => {
    const reason = String(authorizationError || error.reason || error.message);
    const isRefused = Boolean(authorizationError) || reason === NO_CERTIFICATE;
    if (!isRefused) log.debug({ reason }, 'a TLS handshake failed');
    else refusals.add(reason, `refused a certificate that ${clientCa?.source} does not allow`);
  });
  reloadAtHangup(server, read, log);
  server.listen(where);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      const cut = setTimeout(connections.destroy, CLOSE_MS);
      await closed;
      clearTimeout(cut);
      refusals[Symbol.dispose]();
    },
  };
}

function openConnections({ handshakes, open } = PLACES) {
  const shares = { handshake: openShares(handshakes), open: openShares(open) };
  /** By both ends: the raw socket of a TLS socket is not public. */
  const known = new Map<string, { socket: Socket; owner: string; pool: keyof typeof shares }>();
  const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  return {
    begin(socket: Socket): void {
      const [name, owner] = [nameOf(socket), ownerOf(socket)];
      if (!shares.handshake.acquire(owner, 1)) {
        socket.destroy();
        return;
      }
      const one = { socket, owner, pool: 'handshake' as keyof typeof shares };
      known.set(name, one);
      socket.once('close', () => {
        shares[one.pool].release(owner, 1);
        if (known.get(name) === one) known.delete(name);
      });
    },
    /** False when the connection has no place. */
    open(socket: TLSSocket): boolean {
      const one = known.get(nameOf(socket));
      if (one === undefined || !shares.open.acquire(one.owner, 1)) return false;
      shares.handshake.release(one.owner, 1);
      one.pool = 'open';
      return true;
    },
    destroy(): void {
      for (const { socket } of known.values()) socket.destroy();
    },
  };
}

function ownerOf({ remoteAddress = '' }: Socket): string {
  if (!isIPv6(remoteAddress) || remoteAddress.includes('.')) return remoteAddress;
  const [before = '', after] = remoteAddress.split('::');
  const [head, tail] = [before, after].map((part) => (part ? part.split(':') : []));
  if (head === undefined || tail === undefined) return remoteAddress;
  const zeros = after === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail];
  return groups.slice(0, NETWORK_GROUPS).join(':');
}
