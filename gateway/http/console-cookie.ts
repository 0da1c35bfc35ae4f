/**
 * The cookie of a login to the console, and the check that a request comes from the console's own
 * pages. Browsers send the cookie to every port of a host and, with other sites of that host, by
 * themselves; so it counts only with the check, for each method.
 */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../proto/rpc/errors.ts';
import { baseUrlOf } from './base-url.ts';

/** In seconds, renewed by each answer of the console's API. As long as core keeps the login. */
const MAX_AGE_S = 12 * 3_600;
/** 32 bytes in base64url. */
const VALUE = /^[\w-]{43}$/;
/** Browsers omit Origin in same-origin requests of these. */
const READS: readonly (string | undefined)[] = ['GET', 'HEAD'];

/** `publicUrl`: of the service, when it is behind a proxy. */
export type ConsolePlace = { publicUrl: string | undefined };

/** The login in the request's cookie; undefined without one, or when it is ambiguous. */
export function loginOf(request: IncomingMessage, place: ConsolePlace): string | undefined {
  const name = nameOf(request, place);
  const given = (request.headers.cookie ?? '').split(';').flatMap((pair) => {
    const cut = pair.indexOf('=');
    return cut > 0 && pair.slice(0, cut).trim() === name ? [pair.slice(cut + 1).trim()] : [];
  });
  const [value = ''] = given;
  return given.length === 1 && VALUE.test(value) ? value : undefined;
}

/** The header set-cookie for a login, or, for an empty text, to remove it. */
export function setCookie(request: IncomingMessage, text: string, place: ConsolePlace): string {
  const age = text === '' ? 0 : MAX_AGE_S;
  const secure = isSecure(request, place) ? '; Secure' : '';
  const attributes = `Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`;
  return `${nameOf(request, place)}=${text}; ${attributes}`;
}

/**
 * Throws CROSS_ORIGIN unless the browser says that a page of this origin sent the request. Sites
 * cannot set these headers.
 */
export function checkSameOrigin(request: IncomingMessage, { publicUrl }: ConsolePlace): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site === undefined) {
    const places = 'https, or at localhost or 127.0.0.1';
    throw crossOrigin(`Browsers identify its requests only over ${places}.`);
  }
  const own = [publicUrl && new URL(publicUrl).origin, baseUrlOf({ req: request })];
  const isOwn =
    origin === undefined ? READS.includes(request.method) : own.includes(origin.toLowerCase());
  if (site !== 'same-origin' || !isOwn) {
    throw crossOrigin('Behind a proxy, TABERN_PUBLIC_URL must be its address.');
  }
}

/** A `__Host-` name is refused by browsers without Secure, and Secure without https. */
function nameOf(request: IncomingMessage, place: ConsolePlace): string {
  return isSecure(request, place) ? '__Host-tabern' : 'tabern';
}

function isSecure(request: IncomingMessage, { publicUrl }: ConsolePlace): boolean {
  return (publicUrl ?? baseUrlOf({ req: request })).startsWith('https:');
}

function crossOrigin(advice: string): Fault {
  const message = "This request needs an API key, or must come from the console's own page.";
  return new Fault('CROSS_ORIGIN', `${message} ${advice}`);
}
