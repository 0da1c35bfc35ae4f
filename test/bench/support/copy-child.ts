/**
 * A proxy that only copies bytes, in a process of its own, for relay.ts: the cost of any Node
 * process in the path. Its argument is the target port. Prints its own port; ends when its parent
 * disconnects.
 */
import { connect, createServer } from 'node:net';
import { listen } from '../../runner/browser/lab.ts';
import { joinSockets } from './join-sockets.ts';

const to = Number(process.argv[2]);
const server = createServer({ noDelay: true }, (socket) => {
  const far = connect({ port: to, host: '127.0.0.1', noDelay: true });
  joinSockets(socket, far);
});
process.send?.({ port: await listen(server) });
process.on('disconnect', () => process.exit(0));
