/**
 * A proxy that copies bytes and does nothing else, in a process of its own, for relay.ts: what any
 * process of Node on the way costs. Its argument is the port that it leads to. Says its own; ends
 * when its parent lets go of it.
 */
import { connect, createServer } from 'node:net';
import { listen } from '../runner/browser/lab.ts';

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
