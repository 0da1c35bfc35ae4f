/**
 * Endpoints of the published interface that this service does not implement: an explanation instead
 * of a 404. Pure.
 */
import { Fault } from '../../proto/rpc/errors.ts';

/** Endpoints named in answers or used by published clients. */
const NOT_SERVED: readonly (readonly [RegExp, string])[] = [
  [
    /^\/webdriver(?:\/|$)/,
    'WebDriver is not served here; drive the session over CDP by its connectUrl.',
  ],
  [
    /^\/v1\/agents(?:\/|$)/,
    'Agents and their runs are not served here; run an agent as a function, or drive a session.',
  ],
];
const SOCKETS = ['/connect', '/view'];
/** Paths of WebSockets that drive a session. */
const CREDENTIALS = ['signingKey', 'apiKey'];

/** The explanation of a path that is not served; undefined for any other path. */
export function unservedSentence(pathname: string): string | undefined {
  return NOT_SERVED.find(([path]) => path.test(pathname))?.[1];
}

/** Throws NOT_IMPLEMENTED, or UPGRADE_REQUIRED for a WebSocket URL requested without an upgrade. */
export function refuseUnserved(method: string, { pathname, searchParams }: URL): void {
  const sentence = unservedSentence(pathname);
  if (sentence !== undefined) throw new Fault('NOT_IMPLEMENTED', sentence);
  const isOfSession = pathname === '/' && CREDENTIALS.some((name) => searchParams.has(name));
  if (method === 'GET' && (isOfSession || SOCKETS.includes(pathname))) {
    throw new Fault(
      'UPGRADE_REQUIRED',
      'This is the address of a WebSocket; open it as ws or wss.',
    );
  }
}
