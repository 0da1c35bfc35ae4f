/**
 * Checks once, at the runner's start, that a Chrome does what sessions need: through a relay on
 * loopback, as a client of a session does, a page is opened and computes something.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import CDP from 'chrome-remote-interface';
import type { Log } from '../../proto/log.ts';
import type { Chrome } from './launch.ts';
import { openRelay } from './relay.ts';

const PAGE = 'data:text/html,<title>tabern</title>';
/** The page is committed when the navigation is answered, its title read a moment later. */
const EXPRESSION = `new Promise((done) => {
  const look = () => document.title ? done(document.title + innerWidth) : setTimeout(look, 5);
  look();
})`;

/**
 * Its product and version, such as `HeadlessChrome/156.0.8078.79`. Throws when it does not answer
 * as it should.
 */
export async function probeChrome(chrome: Chrome, log: Log): Promise<string> {
  const relay = openRelay(chrome, { log });
  const path = `/${randomUUID()}`; // loopback is open to every user of the machine
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    if (request.url === path) relay.serve(request, socket, head);
    else socket.destroy();
  });
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  server.listen({ host: '127.0.0.1', port: 0 }, resolve);
  await listening;
  const { port } = server.address() as AddressInfo;
  try {
    const client = await CDP({ target: `ws://127.0.0.1:${port}${path}`, local: true });
    try {
      const { product } = await client.Browser.getVersion();
      const { targetInfos } = await client.Target.getTargets({});
      const page = targetInfos.find(({ type }) => type === 'page');
      if (page === undefined) throw new Error(`${product} has no page`);
      const { sessionId } = await client.Target.attachToTarget({
        targetId: page.targetId,
        flatten: true,
      });
      await client.send('Page.navigate', { url: PAGE }, sessionId);
      const said = await evaluate(client, sessionId);
      if (!/^tabern\d+$/.test(said)) throw new Error(`${product} computed ${said}`);
      return product;
    } finally {
      await client.close();
    }
  } finally {
    relay.close(1000, 'probed');
    server.close();
  }
}

async function evaluate(client: CDP.Client, sessionId: string): Promise<string> {
  const question = { expression: EXPRESSION, awaitPromise: true };
  const { result } = await client.send('Runtime.evaluate', question, sessionId);
  return String(result.value);
}
