/**
 * What clients of the reference interface know of, and this service does not serve: a sentence
 * instead of a 404. Pure.
 */
import { Fault } from '../../proto/rpc/errors.ts';

/** What is named in answers or published clients. */
const NOT_SERVED: readonly (readonly [RegExp, string])[] = [
  [
    /^\/webdriver(?:\/|$)/,
    'WebDriver is not served here; drive the session over CDP by its connectUrl.',
  ],
  [
    /^\/v1\/certificates(?:\/|$)/,
    'Certificates are not served here; browserSettings.ignoreCertificateErrors takes any.',
  ],
];
const SOCKETS = ['/connect', '/view'];
/** What a client that means to drive a session names. */
const CREDENTIALS = ['signingKey', 'apiKey'];

/** Throws NOT_IMPLEMENTED, or UPGRADE_REQUIRED for a WebSocket's address asked without upgrade. */
export function refuseUnserved(method: string, { pathname, searchParams }: URL): void {
  const [, sentence] = NOT_SERVED.find(([path]) => path.test(pathname)) ?? [];
  if (sentence !== undefined) throw new Fault('NOT_IMPLEMENTED', sentence);
  const isOfSession = pathname === '/' && CREDENTIALS.some((name) => searchParams.has(name));
  if (method === 'GET' && (isOfSession || SOCKETS.includes(pathname))) {
    throw new Fault(
      'UPGRADE_REQUIRED',
      'This is the address of a WebSocket; open it as ws or wss.',
    );
  }
}
