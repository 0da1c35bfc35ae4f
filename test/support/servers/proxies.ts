/**
 * Proxies of tenants: HTTP with Basic credentials and SOCKS5 with a password. Each forwards every
 * connection to one port of this machine and records the requested target.
 */
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Socket } from 'node:net';

export type Proxy = AsyncDisposable & {
  /** host:port */
  address: string;
  /** The requested targets: `CONNECT host:port`, `GET http://…`, `SOCKS host:port`. */
  asked: string[];
};
const CHALLENGE = 'Basic realm="proxy"';

type Credentials = { username: string; password: string };

export async function startHttpProxy(sitePort: number, credentials?: Credentials): Promise<Proxy> {
  const asked: string[] = [];
  const wanted =
    credentials &&
    `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
  const isKnown = (given: string | undefined): boolean => wanted === undefined || given === wanted;
  const server = createServer((from, to) => {
    if (!isKnown(from.headers['proxy-authorization'])) {
      to.writeHead(407, { 'proxy-authenticate': CHALLENGE }).end();
      return;
    }
    asked.push(`${from.method} ${from.url}`);
    to.end('through the proxy');
  });
  server.on('connect', (from, socket: Socket) => {
    if (!isKnown(from.headers['proxy-authorization'])) {
      const fields = `Proxy-Authenticate: ${CHALLENGE}\r\nContent-Length: 0`;
      socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${fields}\r\n\r\n`);
      return;
    }
    asked.push(`CONNECT ${from.url}`);
    join(socket, sitePort, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
  });
  return await started(server, asked);
}

/** RFC 1928 and 1929, as much as one CONNECT by name or IPv4 address needs. */
export async function startSocksProxy(
  sitePort: number,
  { username, password }: Credentials,
): Promise<Proxy> {
  const asked: string[] = [];
  const server = createTcp({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => {
      socket.write(Buffer.from([5, 2])); // requires a password
      socket.once('data', (given) => {
        const userEnd = 2 + (given[1] ?? 0);
        const isKnown =
          given.toString('latin1', 2, userEnd) === username &&
          given.toString('latin1', userEnd + 1) === password;
        socket.write(Buffer.from([1, isKnown ? 0 : 1]));
        if (!isKnown) return void socket.end();
        socket.once('data', (request) => {
          asked.push(`SOCKS ${targetOf(request)}`);
          const granted = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
          join(socket, sitePort, () => socket.write(granted));
        });
      });
    });
  });
  return await started(server, asked);
}

function targetOf(request: Buffer): string {
  const isName = request[3] === 3;
  const start = isName ? 5 : 4;
  const end = start + (isName ? (request[4] ?? 0) : 4);
  const host = request.subarray(start, end);
  return `${isName ? host.toString() : [...host].join('.')}:${request.readUInt16BE(end)}`;
}

function join(socket: Socket, port: number, ready: () => void): void {
  const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
    ready();
    socket.pipe(far).pipe(socket);
  });
  far.on('error', () => socket.destroy());
  socket.on('error', () => far.destroy()).on('close', () => far.destroy());
}

async function started(server: Server | ReturnType<typeof createTcp>, asked: string[]) {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
