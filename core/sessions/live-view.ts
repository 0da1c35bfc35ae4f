/**
 * The links of a session's live view. They are capabilities: whoever has one needs no key. A token
 * shows the session; wsUrl speaks CDP and has the session's signing key, as connectUrl. Path and
 * query only: core knows no hosts, and no open tabs either, which the gateway adds over REST.
 */

import type { SessionServiceService } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/path-id.ts';
import type { Store } from '../store/types.ts';
import type { SigningKeys } from './signing-keys.ts';
import type { ViewTokens } from './view-tokens.ts';

/** In seconds. Source: reference.md 4.3. */
const EXPIRES_IN_MAX = 21_600;

export function liveView(options: {
  store: Pick<Store, 'getSession'>;
  tokens: Pick<ViewTokens, 'of'>;
  signingKeys: Pick<SigningKeys, 'of'>;
  now: () => number;
}): Pick<Service<typeof SessionServiceService, ProjectCaller>, 'getLiveView'> {
  const { store, tokens, signingKeys, now } = options;
  return {
    async getLiveView({ id, expiresIn }, { projectId, keyId }) {
      const lifeMs = expiresIn === undefined ? undefined : checkedLife(expiresIn);
      const session = await store.getSession({ id: pathId('id', id), projectId });
      if (!session) throw notFound('Session', id);
      if (session.status === 'PENDING') {
        throw new Fault('SESSION_PENDING', 'The session has not started yet. Try again.');
      }
      if (session.status !== 'RUNNING') {
        throw new Fault('SESSION_ENDED', 'The session has ended.');
      }
      const expiresAt = lifeMs === undefined ? session.expiresAt : now() + lifeMs;
      const view = { sessionId: session.id, expiresAt: new Date(expiresAt) };
      const token = tokens.of(keyId === undefined ? view : { ...view, keyId });
      return {
        // With a query, as users append `&navbar=false`.
        debuggerUrl: `/live?token=${token}`,
        debuggerFullscreenUrl: `/live?token=${token}&navbar=false`,
        wsUrl: `/connect?signingKey=${signingKeys.of(session.id, keyId)}`,
        pages: [],
      };
    },
  };
}

function checkedLife(expiresIn: number): number {
  if (expiresIn < 1 || expiresIn > EXPIRES_IN_MAX) {
    throw invalidField('expiresIn', `must be 1 to ${EXPIRES_IN_MAX} seconds.`);
  }
  return expiresIn * 1_000;
}
