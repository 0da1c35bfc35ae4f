/**
 * Connects a function host to its browsers: a server on a unix socket that only this host can
 * reach. An upgrade with the signing key of a registered session is served by that session's relay;
 * all other requests are refused.
 */
import {
  type KeyAuthenticatedServer,
  openKeyAuthenticatedServer,
  type UpgradeHandler,
} from '../sessions/server/key-authenticated-server.ts';

export type Broker = Pick<KeyAuthenticatedServer<UpgradeHandler>, 'register' | 'serve'> &
  AsyncDisposable;

export function openBroker(socketPath: string): Promise<Broker> {
  return openKeyAuthenticatedServer<UpgradeHandler>(socketPath, {
    upgrade: (relay, { request, socket, head }) => relay.serve(request, socket, head),
    answer: () => false,
    unauthorized: { statusCode: 401, message: 'This key opens no session here.' },
  });
}
