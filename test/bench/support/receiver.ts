/**
 * A separate process: an https endpoint that responds 204 at once, and below /hung never. Prints
 * `{url, ca}` on a line. GET /arrivals returns `{id: ms}` of CLOCK_MONOTONIC, the first arrival of
 * a request with that webhook-id, and clears the list.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { authority } from '../../support/servers/certificates.ts';

const NS_PER_MS = 1e6;
const ca = await authority();
const arrivals = new Map<string, number>();

const server = createServer(await ca.issue(), (request, response) => {
  const id = String(request.headers['webhook-id']);
  if (request.method === 'GET') {
    response.end(JSON.stringify(Object.fromEntries(arrivals)));
    arrivals.clear();
    return;
  }
  request.resume();
  if (request.url?.startsWith('/hung')) return;
  if (!arrivals.has(id)) arrivals.set(id, Number(process.hrtime.bigint()) / NS_PER_MS);
  request.once('end', () => response.writeHead(204).end());
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ url: `https://127.0.0.1:${port}`, ca: ca.cert })}\n`);
process.once('disconnect', () => process.exit());
