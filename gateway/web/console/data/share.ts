/**
 * Where a session is read: by the login's cookie below /v1, or by the token of a link to this one
 * session, which is sent in a header and stands in the address's fragment only.
 */

/** The routes of a shared session; the token names it. */
export const SHARED = '/console/api/v1/shared';
const HEADER = 'x-tabern-share';
const TOKEN = /^#([\w-]{1,200})$/;

let token = '';

/** The token of the address; empty without one. */
export function tokenOf(fragment: string): string {
  return TOKEN.exec(fragment)?.[1] ?? '';
}

/** From now on this page, or this thread, reads the session of the link. */
export function readByToken(text: string): void {
  token = text;
}

/** The token in use; empty with a login. */
export function sharedToken(): string {
  return token;
}

/** The path of a part of a session, such as `logs`. */
export function partOf(sessionId: string, part: string): string {
  return token === ''
    ? `/v1/sessions/${encodeURIComponent(sessionId)}/${part}`
    : `${SHARED}/${part}`;
}

/** Where the parts of a session's log are read. */
export function logOf(sessionId: string): string {
  return token === ''
    ? `/console/api/v1/sessions/${encodeURIComponent(sessionId)}/logs`
    : `${SHARED}/logs`;
}

/** The credential of requests, beside the cookie. */
export function shareHeaders(): Record<string, string> {
  return token === '' ? {} : { [HEADER]: token };
}
