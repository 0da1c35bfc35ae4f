/**
 * Redacts secrets from the protocol log: cookies, headers, passwords and typed text. Only the few
 * methods that carry them are parsed. A script that a client runs is logged unchanged, with any
 * secrets it contains. Pure.
 */
import type { Command } from '../../browser/cdp/command-policy.ts';

/** Replaces a secret. */
export const REDACTED = '[redacted]';
/** Number of header names remembered. Ours: each is searched for in every event. */
const HEADERS_MAX = 100;
/** Matches every name, once there are more. */
const ALL = '*';

/** Every value below these members is secret, except names of headers and cookies. */
type Members = { request?: readonly string[]; response?: readonly string[] };

const TYPED = ['text', 'unmodifiedText', 'key', 'code', 'keyIdentifier', 'commands'];
const KEY_CODES = ['windowsVirtualKeyCode', 'nativeVirtualKeyCode'];
const ANSWERED = ['responseHeaders', 'binaryResponseHeaders', 'body'];

const SECRETS: Readonly<Record<string, Members>> = {
  'Network.setCookie': { request: ['value'] },
  'Network.setCookies': { request: ['value'] },
  'Storage.setCookies': { request: ['value'] },
  'Network.getCookies': { response: ['value'] },
  'Network.getAllCookies': { response: ['value'] },
  'Storage.getCookies': { response: ['value'] },
  'Target.createBrowserContext': { request: ['proxyServer'] },
  'Network.setExtraHTTPHeaders': { request: ['headers'] },
  'Network.getRequestPostData': { response: ['postData'] },
  'Network.continueInterceptedRequest': {
    request: ['headers', 'postData', 'rawResponse', 'authChallengeResponse'],
  },
  'Fetch.continueWithAuth': { request: ['username', 'password'] },
  'Fetch.continueRequest': { request: ['headers', 'postData'] },
  'Fetch.continueResponse': { request: ANSWERED },
  'Fetch.fulfillRequest': { request: ANSWERED },
  'Input.insertText': { request: ['text'] },
  'Input.imeSetComposition': { request: ['text'] },
  'Input.dispatchKeyEvent': { request: [...TYPED, ...KEY_CODES] },
  'Page.handleJavaScriptDialog': { request: ['promptText'] },
  'DOMStorage.setDOMStorageItem': { request: ['value'] },
  'DOMStorage.getDOMStorageItems': { response: ['entries'] },
  'WebAuthn.addCredential': { request: ['privateKey', 'userHandle'] },
  'WebAuthn.getCredential': { response: ['privateKey', 'userHandle'] },
  'WebAuthn.getCredentials': { response: ['privateKey', 'userHandle'] },
  'Autofill.trigger': { request: ['card', 'address'] },
};

/** In events: what a page sends, and the members that hold headers. */
const SENT = ['postData', 'postDataEntries', 'headersText', 'requestHeadersText'];
const HEADER_MAPS = ['headers', 'requestHeaders'];
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie'],
  ...['x-api-key', 'x-auth-token', 'x-csrf-token', 'x-xsrf-token'],
]);
const MAY_BE_SECRET = new RegExp(`"(?:${[...SECRET_HEADERS].join('|')})"|"postData`, 'i');

/** Whether a message of this method may carry secrets; then not even its beginning is logged. */
export function isSecret(method: string): boolean {
  return Object.hasOwn(SECRETS, method) || method.startsWith('Network.');
}

/** Headers that the client adds to every request, in lower case: events contain them again. */
export function extraHeaders({ method, params }: Command): string[] {
  const headers = method === 'Network.setExtraHTTPHeaders' ? params?.['headers'] : undefined;
  if (typeof headers !== 'object' || headers === null) return [];
  return Object.keys(headers).map((name) => name.toLowerCase());
}

/** Adds names that are secret in events; past the limit, every name is. */
export function remember(extra: Set<string>, names: readonly string[]): void {
  for (const name of names) {
    if (extra.size < HEADERS_MAX) extra.add(name);
    else if (!extra.has(name)) extra.add(ALL);
  }
}

/** Params or result without secrets; undefined when they have none. */
export function redacted(method: string, side: keyof Members, value: unknown): unknown {
  const members = Object.hasOwn(SECRETS, method) ? SECRETS[method]?.[side] : undefined;
  return members === undefined ? undefined : without(value, new Set(members));
}

/** Whether the params or the result of a method hold secrets. */
export function hasSecrets(method: string, side: keyof Members): boolean {
  return Object.hasOwn(SECRETS, method) && SECRETS[method]?.[side] !== undefined;
}

/** Whether the text of an event may hold secrets. */
export function mayTell(method: string, text: string, extra: ReadonlySet<string>): boolean {
  if (!method.startsWith('Network.')) return false;
  if (MAY_BE_SECRET.test(text)) return true;
  if (extra.size === 0) return false;
  if (extra.has(ALL)) return true;
  const lower = text.toLowerCase();
  return [...extra].some((name) => lower.includes(JSON.stringify(name)));
}

/** An event's params without secrets. */
export function withoutHeaders(value: unknown, extra: ReadonlySet<string>): unknown {
  return mapped(value, (name, member) => {
    if (SENT.includes(name)) return blank(member);
    if (!HEADER_MAPS.includes(name)) return withoutHeaders(member, extra);
    return mapped(member, (header, text) => {
      const key = header.toLowerCase();
      return SECRET_HEADERS.has(key) || extra.has(key) || extra.has(ALL) ? REDACTED : text;
    });
  });
}

function without(value: unknown, members: ReadonlySet<string>): unknown {
  return mapped(value, (name, member) =>
    members.has(name) ? blank(member) : without(member, members),
  );
}

/** The same structure with all values redacted except names. */
function blank(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return REDACTED;
  return mapped(value, (name, member) => (name === 'name' ? member : blank(member)));
}

/** Applies `change` to the members of an object, or of an array's elements. */
function mapped(value: unknown, change: (name: string, member: unknown) => unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => {
      return typeof one === 'object' ? mapped(one, change) : change('', one);
    });
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, change(name, member)]),
  );
}
