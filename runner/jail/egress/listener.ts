/**
 * Accepts the connections that leave a jail. A jail's network has only a loopback; a short-lived
 * helper, started inside next to the real program, listens there and passes the listening socket
 * out over Node IPC. The runner accepts on it, so the jail has no relay process and no route. A
 * jail without a network namespace gets a loopback port of the machine.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, Server, type Socket } from 'node:net';

/** Inside the jail's own network, so the same number works for every jail. */
export const LISTENER_PORT = 3128;
/** Ours: the helper answers in about 60 ms. */
const HELPER_TIMEOUT_MS = 15_000;
/** The descriptor of the IPC channel in the jailed program; 3 and 4 are Chrome's debugging pipe. */
const LISTENER_FD = 5;

/**
 * Runs inside, under `node -e`, for about 40 ms. It exits when the runner holds the socket. It
 * listens on all loopback addresses: some belong to proxies (Egress.divert).
 */
const HELPER = `
const server = require('node:net').createServer();
const address = { host: '0.0.0.0', port: ${LISTENER_PORT}, backlog: 511 };
server.listen(address, () => process.send('listener', server));
server.on('error', (error) => { process.send(String(error)); });
process.on('disconnect', () => process.exit(0));
`;

/**
 * The arguments that start `command` with the helper next to it. The helper is orphaned to the
 * jail's reaper, and neither holds the other's descriptors.
 */
export function withListener(paths: { shell: string; node: string }, command: string[]): string[] {
  const helper = `NODE_CHANNEL_FD=${LISTENER_FD} exec "$0" -e "$1" 3<&- 4>&- </dev/null`;
  const script = `(${helper} &); shift; exec "$@" ${LISTENER_FD}<&-`;
  return [paths.shell, '-c', script, paths.node, HELPER, ...command];
}

/** Resolves when connections are accepted. The child was started with 'ipc' at LISTENER_FD. */
export async function receiveListener(child: ChildProcess, serve: (socket: Socket) => void) {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const late = new Error('the helper did not open the listener in time');
  const timer = setTimeout(reject, HELPER_TIMEOUT_MS, late);
  child.once('message', (message, handle) => {
    if (handle instanceof Server) resolve(handle);
    else reject(new Error(`the helper could not listen: ${String(message).slice(0, 200)}`));
  });
  child.once('disconnect', () => reject(new Error('the helper ended early')));
  try {
    const server = await promise;
    server.on('connection', serve);
    return server;
  } finally {
    clearTimeout(timer);
    if (child.connected) child.disconnect();
  }
}

/** A loopback port for a jail on the machine's network, open to any process of this machine. */
export async function openListener(serve: (socket: Socket) => void): Promise<Server> {
  const server = createServer(serve).listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening'); // rejects on an error
  server.on('error', (error) => process.emitWarning(error)); // accepting a connection failed
  return server;
}
