/**
 * A proxy that only copies bytes, in a process of its own, for relay.ts: the cost of any Node
 * process in the path. Its argument is the target port. Prints its own port; ends when its parent
 * disconnects.
 */
import { connect, createServer } from 'node:net';
import { listen } from '../../runner/browser/lab.ts';

const to = Number(process.argv[2]);
const server = createServer({ noDelay: true }, (socket) => {
  const far = connect({ port: to, host: '127.0.0.1', noDelay: true });
  for (const [one, other] of [
    [socket, far],
    [far, socket],
  ] as const) {
    one.pipe(other);
    one.on('error', () => other.destroy()).on('close', () => other.destroy());
  }
});
process.send?.({ port: await listen(server) });
process.on('disconnect', () => process.exit(0));
