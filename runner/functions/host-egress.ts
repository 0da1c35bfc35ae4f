/**
 * Internet access of handlers: one egress proxy per host behind a unix socket, with the rules of
 * runner/jail/egress/resolver.ts.
 */
import { once } from 'node:events';
import { type BlockList, createServer } from 'node:net';
import type { Log } from '../../proto/common/log.ts';
import { openEgress } from '../jail/egress/egress-proxy.ts';
import type { OpenEgress } from './host-sockets.ts';

export function hostEgress(options: { allow: BlockList; log: Log }): OpenEgress {
  return async (socketPath) => {
    const egress = openEgress(options);
    const server = createServer((socket) => egress.handle(socket));
    server.listen(socketPath);
    await once(server, 'listening');
    return {
      serve: egress.handle,
      async [Symbol.asyncDispose]() {
        const closed = once(server, 'close');
        server.close();
        egress.close();
        await closed;
      },
    };
  };
}
