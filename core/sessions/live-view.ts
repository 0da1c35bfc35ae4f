/**
 * Live view links of a session. The links are credentials and need no API key. A token shows the
 * session, and takes input unless it is read-only; wsUrl speaks CDP and contains the session's
 * signing key, as connectUrl does. Path and query only: core does not know the public address, nor
 * the open tabs, which the gateway adds in REST.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SessionServiceService } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { SessionRow } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';
import { type SigningKeys, uuid } from './signing-keys.ts';

/** Source: proto/spec/sessions.md 6. */
const EXPIRES_IN = { min: 1, max: 21_600, unit: ' seconds' };

export function liveView(options: {
  store: Pick<Store, 'getSession'>;
  tokens: Pick<ViewTokens, 'of'>;
  signingKeys: Pick<SigningKeys, 'of'>;
  now: () => number;
}): Pick<Service<typeof SessionServiceService, ProjectCaller>, 'getLiveView'> {
  const { store, tokens, signingKeys, now } = options;
  return {
    async getLiveView({ id, expiresIn }, { projectId, keyId }) {
      if (expiresIn !== undefined) inRange('expiresIn', expiresIn, EXPIRES_IN);
      const session = await runningSession(store, { id: pathId('id', id), projectId });
      const end = expiresIn === undefined ? session.expiresAt : now() + expiresIn * 1_000;
      const token = tokens.of({ sessionId: session.id, expiresAt: new Date(end), keyId });
      return {
        // With a query, because users append `&navbar=false`.
        debuggerUrl: `/live?token=${token}`,
        debuggerFullscreenUrl: `/live?token=${token}&navbar=false`,
        wsUrl: `/connect?signingKey=${signingKeys.of(session.id, keyId)}`,
        pages: [],
      };
    },
  };
}

/** Throws RESOURCE_NOT_FOUND, SESSION_PENDING or SESSION_ENDED. */
export async function runningSession(
  store: Pick<Store, 'getSession'>,
  { id, projectId }: { id: string; projectId: string },
): Promise<SessionRow> {
  const session = orNotFound(await store.getSession({ id, projectId }), 'Session', id);
  if (session.status === 'PENDING') {
    throw new Fault('SESSION_PENDING', 'The session has not started yet. Try again.');
  }
  if (session.status !== 'RUNNING') {
    throw new Fault('SESSION_ENDED', 'The session has ended.');
  }
  return session;
}

const ID_BYTES = 16;
const KEY_AT = ID_BYTES + 8;
const BODY_BYTES = KEY_AT + 8;
const SIGNATURE_BYTES = 32;
/** In base64url: 64 bytes, or 80 with the id of a handoff. */
const TOKEN = /^[\w-]{86}(?:[\w-]{21})?$/;

export type View = {
  sessionId: string;
  expiresAt: Date;
  keyId?: string | undefined;
  /** It takes no input, whatever its client sends. */
  isReadOnly?: true;
  /** Its caller must check that this handoff is pending: the view ends with it. */
  handoffId?: string;
};

export type ViewTokens = ReturnType<typeof viewTokens>;

export function viewTokens(sealer: Sealer, now: () => number) {
  const key = sealer.derive('tokens of live views');
  // a key of its own, so that no client can change the one kind of token into the other
  const readOnlyKey = sealer.derive('tokens of read-only live views');
  const signed = (body: Buffer, by: Uint8Array): string =>
    Buffer.concat([body, createHmac('sha256', by).update(body).digest()]).toString('base64url');
  return {
    of({ sessionId, expiresAt, keyId = '', isReadOnly, handoffId }: View): string {
      const body = Buffer.alloc(BODY_BYTES + (handoffId === undefined ? 0 : ID_BYTES));
      body.write(sessionId.replaceAll('-', ''), 'hex');
      body.write(handoffId?.replaceAll('-', '') ?? '', BODY_BYTES, 'hex');
      body.writeBigUInt64BE(BigInt(expiresAt.getTime()), ID_BYTES);
      body.write(keyId, KEY_AT, 'latin1');
      return signed(body, isReadOnly ? readOnlyKey : key);
    },
    /**
     * The session of a token; undefined for an invalid signature. Throws URL_EXPIRED after its
     * expiry. Callers must check whether the session still runs.
     */
    read(token: string): View | undefined {
      if (!TOKEN.test(token)) return undefined;
      const body = Buffer.from(token, 'base64url').subarray(0, -SIGNATURE_BYTES);
      // Compared as text: the last character of base64url has bits that decoding would drop.
      const isBy = (by: Uint8Array) =>
        timingSafeEqual(Buffer.from(signed(body, by)), Buffer.from(token));
      const isReadOnly = isBy(readOnlyKey);
      if (!isReadOnly && !isBy(key)) return undefined;
      const expiresAt = Number(body.readBigUInt64BE(ID_BYTES));
      if (now() >= expiresAt) {
        throw new Fault('URL_EXPIRED', 'The live view has expired. Ask for another.');
      }
      const sessionId = uuid(body.toString('hex', 0, ID_BYTES));
      const keyId = body.toString('latin1', KEY_AT, BODY_BYTES).replaceAll('\0', '');
      const view: View = { sessionId, expiresAt: new Date(expiresAt) };
      if (keyId !== '') view.keyId = keyId;
      if (isReadOnly) view.isReadOnly = true;
      const handoffId = body.toString('hex', BODY_BYTES);
      if (handoffId !== '') view.handoffId = uuid(handoffId);
      return view;
    },
  };
}
