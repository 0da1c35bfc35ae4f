/**
 * What a session is created with, as it is stored. Its proxies may carry passwords, in a field or
 * in an address, so the list of them is sealed for its session; only the runner that starts it gets
 * them open.
 */
import { Fault } from '../../proto/rpc/errors.ts';
import type { Sealer } from '../common/sealer.ts';
import type { SessionParams } from '../validation/session-params.ts';

const PLACE_END = '/proxies';

export type SessionSecrets = {
  /** JSON to be stored. */
  seal(params: SessionParams, sessionId: string): string;
  /** As it was before. Throws DATA_CORRUPT when the sealed part is damaged or another session's. */
  open(json: string, sessionId: string): string;
};

export function sessionSecrets(sealer: Sealer): SessionSecrets {
  return {
    seal(params, sessionId) {
      const { proxies } = params;
      if (!Array.isArray(proxies)) return JSON.stringify(params);
      const sealed = sealer.seal(Buffer.from(JSON.stringify(proxies)), placeOf(sessionId));
      return JSON.stringify({ ...params, proxies: { sealed: sealed.toString('base64') } });
    },
    open(json, sessionId) {
      const params = JSON.parse(json) as SessionParams;
      const sealed = sealedOf(params['proxies']);
      if (sealed === undefined) return json;
      const plain = sealer.open(Buffer.from(sealed, 'base64'), placeOf(sessionId));
      return JSON.stringify({ ...params, proxies: JSON.parse(plain.toString()) });
    },
  };
}

/** Whether that is why they did not open. */
export function isOfProxies(error: unknown): boolean {
  return error instanceof Fault && String(error.facts['place']).endsWith(PLACE_END);
}

function placeOf(sessionId: string): string {
  return `sessions/${sessionId}${PLACE_END}`;
}

/** An object is ours: what people send is a list, true or false. */
function sealedOf(proxies: unknown): string | undefined {
  const { sealed } = Object(proxies) as { sealed?: unknown };
  return typeof sealed === 'string' ? sealed : undefined;
}
