/** Dialling checked addresses. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import { dial } from '../../../../runner/jail/egress/dial.ts';

const targets = suite('runner/jail/egress/dial');
/** Above Node's own patience with one of several addresses, 250 ms. */
const BUSY_MS = 400;

targets('the working address of several is connected to while the machine is busy', async () => {
  const server = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://site.test:${port}/`);
  await turn(); // of the event loop: timers run before connections now
  const dialled = dial({ url, host: url.hostname, port, addresses: ['127.0.0.1', '::1'] });
  const until = performance.now() + BUSY_MS;
  while (performance.now() < until); // as other work of the process does
  const socket = await dialled;
  if ('why' in socket) throw new Error(socket.why);
  socket.destroy();
  server.close();
});

targets.run();
