/** Where a session is, for gateways that have its signing key or a live view's token. */
import { Fault, invalidField } from '../proto/errors.ts';
import type {
  LocateSessionResponse,
  SessionServiceService,
} from '../proto/gen/tabern/v1/sessions.pb.ts';
import type { MachineCaller, Service } from './call.ts';
import type { SigningKeys } from './signing-keys.ts';
import type { Store } from './store/types.ts';

/** Reads a live view's token; undefined for one that is not ours. */
export type ReadViewToken = (token: string) => { sessionId: string; expiresAt: Date } | undefined;

export function locateService({
  store,
  signingKeys,
  readViewToken,
}: {
  store: Pick<Store, 'locateSession'>;
  signingKeys: SigningKeys;
  readViewToken: ReadViewToken;
}): Service<Pick<typeof SessionServiceService, 'locateSession'>, MachineCaller> {
  return {
    async locateSession({ credential }) {
      switch (credential?.$case) {
        case 'signingKey':
          return locate(signingKeys.read(credential.value), undefined);
        case 'viewToken': {
          const view = readViewToken(credential.value);
          return locate(view?.sessionId, view?.expiresAt);
        }
        case undefined:
          throw invalidField('credential', 'must be given.');
      }
    },
  };

  async function locate(
    sessionId: string | undefined,
    expiresAt: Date | undefined,
  ): Promise<LocateSessionResponse> {
    const found = sessionId === undefined ? undefined : await store.locateSession(sessionId);
    if (sessionId === undefined || !found) {
      throw new Fault('SIGNING_KEY_INVALID', 'Invalid signing key.');
    }
    const { status, address, isReleased } = found;
    const isLive = status === 'PENDING' || status === 'RUNNING';
    if (!isLive || isReleased) throw new Fault('SESSION_ENDED', 'The session has ended.');
    if (status === 'RUNNING' && address === null) {
      throw new Fault('BROWSER_FAILED', 'The runner of this session takes no connections.');
    }
    const place = status === 'PENDING' ? '' : (address ?? '');
    const signingKey = signingKeys.of(sessionId);
    return { sessionId, status, address: place, signingKey, expiresAt };
  }
}
