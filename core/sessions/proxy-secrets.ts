/**
 * Creation parameters of a session as they are stored. Proxies may contain passwords, in a field or
 * in a URL, so their list is sealed for its session; only the runner that starts the session
 * receives them in plain text.
 */
import { ignoredIn } from '../../proto/json/ignored-members.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import type { Sealer } from '../common/sealer.ts';
import type { SessionParams } from '../validation/session-params.ts';

const PLACE_END = '/proxies';
/** Members whose names must be known: a misspelt rule would restrict nothing. */
const OF_RULES = /(?:^|\.)browserSettings\.network\./;

export type SessionSecrets = ReturnType<typeof sessionSecrets>;

export function sessionSecrets(sealer: Sealer) {
  return {
    /** JSON to be stored. */
    seal(params: SessionParams, sessionId: string): string {
      const { proxies } = params;
      if (!Array.isArray(proxies)) return JSON.stringify(params);
      const sealed = sealer.seal(Buffer.from(JSON.stringify(proxies)), placeOf(sessionId));
      return JSON.stringify({ ...params, proxies: { sealed: sealed.toString('base64') } });
    },
    /**
     * The original parameters. Throws DATA_CORRUPT when the sealed part is damaged or of another
     * session.
     */
    open(json: string, sessionId: string): string {
      const params = JSON.parse(json) as SessionParams;
      const sealed = sealedOf(params['proxies']);
      if (sealed === undefined) return json;
      const plain = sealer.open(Buffer.from(sealed, 'base64'), placeOf(sessionId));
      return JSON.stringify({ ...params, proxies: JSON.parse(plain.toString()) });
    },
  };
}

/**
 * Adds the unknown members that the gateway dropped: the runner logs them in the session. Throws
 * INVALID_FIELD for one of a rule.
 */
export function withIgnored(params: SessionParams, { metadata }: Pick<Call, 'metadata'>) {
  const ignoredMembers = ignoredIn(metadata);
  const misspelt = ignoredMembers.find((name) => OF_RULES.test(name));
  if (misspelt !== undefined) throw invalidField(misspelt, 'is not a known field.');
  return ignoredMembers.length === 0 ? params : { ...params, ignoredMembers };
}

/** Whether the proxies could not be opened. */
export function isOfProxies(error: unknown): boolean {
  return error instanceof Fault && String(error.facts['place']).endsWith(PLACE_END);
}

function placeOf(sessionId: string): string {
  return `sessions/${sessionId}${PLACE_END}`;
}

/** A sealed list is an object; clients send a list, true or false. */
function sealedOf(proxies: unknown): string | undefined {
  const { sealed } = Object(proxies) as { sealed?: unknown };
  return typeof sealed === 'string' ? sealed : undefined;
}
