/**
 * The credential in a URL that drives a session: the key in it, or an API key in a header. The
 * forms are those of proto/spec/sessions.md 4: connectUrl, and the older ?apiKey=&sessionId=, where
 * apiKey alone starts a session.
 */
import type { IncomingMessage } from 'node:http';
import { CreateSessionRequest } from '../../proto/gen/tabern/v1/sessions.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { URL_MAX_CHARS } from '../config.ts';
import { callMetadata } from '../http/auth.ts';
import type { Credential } from './runner-client.ts';

/** The requested session: by a credential, by API key and id, or a new one. */
export type Presented =
  | { kind: 'credential'; credential: Credential }
  | { kind: 'session'; sessionId: string; options: CallOptions }
  | { kind: 'new'; options: CallOptions };

/** The URL of the request, of which only path and query are used. Throws as gateway/app.ts does. */
export function targetOf({ url = '' }: IncomingMessage): URL {
  if (url.length > URL_MAX_CHARS) {
    throw new Fault('URI_TOO_LONG', 'The URL is too long.', { limitChars: URL_MAX_CHARS });
  }
  const target = url.startsWith('/') ? URL.parse(`ws://gateway${url}`) : null;
  if (!target) throw new Fault('MALFORMED_REQUEST', 'The request is not valid HTTP.');
  return target;
}

/** Throws API_KEY_MISSING without a credential. */
export function presentedBy(
  request: IncomingMessage,
  { searchParams }: URL,
  requestId: string,
): Presented {
  const once = (name: string): string | undefined => onceIn(searchParams, name);
  const signingKey = once('signingKey');
  if (signingKey !== undefined) {
    return { kind: 'credential', credential: { $case: 'signingKey', value: signingKey } };
  }
  const metadata = callMetadata(request, { requestId, key: once('apiKey') });
  const sessionId = once('sessionId');
  if (sessionId === undefined) {
    const isResumable = once('resume') !== undefined; // its address would start another session
    if (isResumable) throw invalidField('resume', 'needs a session: `sessionId` or `signingKey`.');
    return { kind: 'new', options: { metadata } };
  }
  return { kind: 'session', sessionId, options: { metadata } };
}

/** The value of the parameter, if any. Throws INVALID_FIELD for one that is repeated. */
export function onceIn(searchParams: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = searchParams.getAll(name);
  if (more.length > 0) throw invalidField(name, 'must be given once.');
  return value;
}

/** The token of a live view link. */
export function viewerOf({ searchParams }: URL): Presented {
  const value = searchParams.get('token') ?? '';
  return { kind: 'credential', credential: { $case: 'viewToken', value } };
}

/**
 * The credential by which core locates the session; starts a session when a new one is requested.
 */
export async function credentialOf(
  presented: Presented,
  { sessions }: Pick<Clients, 'sessions'>,
  signal: AbortSignal,
): Promise<Credential> {
  switch (presented.kind) {
    case 'credential':
      return presented.credential;
    case 'session': {
      const options = { ...presented.options, signal };
      const { session } = await sessions.getSession({ id: presented.sessionId }, options);
      return signingKey(session?.signingKey);
    }
    case 'new': {
      const plain = CreateSessionRequest.create();
      const { session } = await sessions.createSession(plain, { ...presented.options, signal });
      return signingKey(session?.signingKey);
    }
  }
}

function signingKey(value: string | undefined): Credential {
  if (value === undefined) throw new Fault('SESSION_ENDED', 'The session has ended.');
  return { $case: 'signingKey', value };
}
