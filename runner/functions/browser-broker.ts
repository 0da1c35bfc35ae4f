/**
 * The way from a function host to its browsers: a server on a unix socket that only this host can
 * reach. An upgrade with the signing key of a session that this host has now goes to that session's
 * relay; everything else is refused.
 */
import { type Keyed, openKeyed, type Serves } from '../sessions/server/keyed-server.ts';

export type Broker = Pick<Keyed<Serves>, 'admit' | 'serve'> & AsyncDisposable;

export function openBroker(socketPath: string): Promise<Broker> {
  return openKeyed<Serves>(socketPath, {
    upgrade: (relay, { request, socket, head }) => relay.serve(request, socket, head),
    answer: () => false,
    stranger: { statusCode: 401, message: 'This key opens no session here.' },
  });
}
