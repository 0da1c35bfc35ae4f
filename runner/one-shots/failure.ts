/** What ends a one-shot without an answer, and the sentence for its user. */
import type { FailureKind } from '../../proto/one-shots/messages.ts';

export class Failure extends Error {
  override readonly name = 'Failure';
  readonly kind: FailureKind;
  readonly field: string | undefined;

  constructor(kind: FailureKind, message: string, field?: string) {
    super(message);
    this.kind = kind;
    this.field = field;
  }
}

/** Reasons of Chrome's net errors, in the words of the answer. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^NAME_NOT_RESOLVED/, 'the name of its host does not resolve (DNS)'],
  [/^CONNECTION_REFUSED/, 'its host refused the connection'],
  [/^(CERT|SSL)_/, 'its certificate or TLS is not accepted'],
  [/^(CONNECTION_)?TIMED_OUT/, 'its host did not answer'],
  [/^TOO_MANY_REDIRECTS/, 'it redirects too often'],
  [/^PROXY_|^TUNNEL_/, 'the proxy did not connect'],
  [/^ADDRESS_UNREACHABLE/, 'its address is not reachable'],
  [/^BLOCKED_BY_CLIENT/, 'its host is blocked'],
  [/^ABORTED/, 'it is a download or has no content'],
];
/** The relay names the reason and the operator's setting after the code. */
const REFUSED = /^net::ERR_ADDRESS_UNREACHABLE: (.+)$/s;

/** Of the `errorText` of a navigation. */
export function navigationFailure(errorText: string): Failure {
  const refused = REFUSED.exec(errorText)?.[1];
  if (refused !== undefined) return new Failure('refused', `The page is not loaded: ${refused}.`);
  const code = /^net::ERR_(\w+)/.exec(errorText)?.[1] ?? 'FAILED';
  const [, why = 'the connection failed'] = REASONS.find(([name]) => name.test(code)) ?? [];
  return new Failure('unreachable', `The page cannot be loaded: ${why} (${code}).`);
}
