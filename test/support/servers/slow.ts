/** A download that never ends: slow.bin, at any path of 127.0.0.1:<port>. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export async function startSlow(): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((_, response) => {
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-length': '1000000',
      'content-disposition': 'attachment; filename=slow.bin',
    });
    response.write(Buffer.alloc(1_000));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
