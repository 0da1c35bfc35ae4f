/** Locates a session by its signing key or a live view token, for gateways. */

import type {
  LocateSessionRequest,
  LocateSessionResponse,
  SessionServiceService,
} from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { throwIfOver } from '../../proto/rpc/local.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import type { Store } from '../store/types.ts';
import type { View, ViewTokens } from './live-view.ts';
import type { Signed, SigningKeys } from './signing-keys.ts';

const HANDOFF_OVER = 'The request to you has ended. You may close this page.';

export function locateService({
  store,
  signingKeys,
  readViewToken,
  closing,
}: {
  store: Pick<Store, 'locateSession' | 'getApiKey' | 'isHandoffPending' | 'onWake'>;
  signingKeys: SigningKeys;
  readViewToken: ViewTokens['read'];
  closing: AbortSignal;
}): Service<Pick<typeof SessionServiceService, 'locateSession'>, MachineCaller> {
  return {
    async locateSession({ credential, waitMs = 0 }, { call }) {
      const found = await longPoll(store, 'sessions', () => presented(credential), {
        call,
        closing,
        waitMs,
        isDone: ({ status }) => status !== 'PENDING',
      });
      throwIfOver(call);
      return found;
    },
  };

  async function presented(
    credential: LocateSessionRequest['credential'],
  ): Promise<LocateSessionResponse> {
    switch (credential?.$case) {
      case 'signingKey':
        return await locate(signingKeys.read(credential.value));
      case 'viewToken':
        return await locate(readViewToken(credential.value));
      case undefined:
        throw invalidField('credential', 'must be given.');
    }
  }

  async function locate(
    signed: (Signed & Partial<View>) | undefined,
  ): Promise<LocateSessionResponse> {
    const [found, isValid] = await Promise.all([
      signed && store.locateSession(signed.sessionId),
      isKeyValid(store, signed?.keyId),
    ]);
    if (!signed || !found || !isValid) {
      throw new Fault('SIGNING_KEY_INVALID', 'Invalid signing key.');
    }
    const { handoffId = '' } = signed;
    if (handoffId !== '' && !(await store.isHandoffPending(handoffId))) {
      throw new Fault('URL_EXPIRED', HANDOFF_OVER);
    }
    const { status, address, runnerId, isReleased } = found;
    const isLive = status === 'PENDING' || status === 'RUNNING';
    if (!isLive || isReleased) throw new Fault('SESSION_ENDED', 'The session has ended.');
    if (status === 'RUNNING' && address === null) {
      throw new Fault('BROWSER_FAILED', 'The runner of this session takes no connections.');
    }
    const isPlaced = status !== 'PENDING' && address !== null;
    const place = isPlaced ? { address, runnerId: runnerId ?? '' } : { address: '', runnerId: '' };
    const { sessionId, keyId: apiKeyId = '', expiresAt, isReadOnly = false } = signed;
    const signingKey = signingKeys.of(sessionId);
    const rights = { expiresAt, apiKeyId, isReadOnly, handoffId };
    return { sessionId, status, ...place, signingKey, ...rights };
  }
}

/** Whether the API key that received a credential is valid; true for a credential without one. */
export async function isKeyValid(
  store: Pick<Store, 'getApiKey'>,
  keyId: string | undefined,
): Promise<boolean> {
  if (keyId === undefined) return true;
  const key = await store.getApiKey(keyId);
  return key !== undefined && key.revokedAt === null;
}
