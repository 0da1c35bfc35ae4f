/**
 * Requests to a server without a key that stands on a person's own machine. Every web page in a
 * browser there can send requests to it, and a page's own name can be made to lead to it (DNS
 * rebinding). So a request from another site is refused, and so is one for a name that others may
 * own. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|\[?::1\]?|localhost|.+\.localhost)$/i;

export type LocalServer = {
  /** The address it listens on, as configured. */
  boundTo: string;
  /** On a network of its operator's, whose names only the operator knows. */
  takesAnyName?: boolean;
};

/** Why a request may not be answered, as a sentence; undefined when it may. */
export function foreignRequest(
  headers: IncomingHttpHeaders,
  server: LocalServer,
): string | undefined {
  const { host = '', origin } = headers;
  const site = headers['sec-fetch-site'] ?? 'none';
  const isOwnSite = site === 'none' || site === 'same-origin';
  if (!isOwnSite || (origin !== undefined && hostOf(origin) !== host.toLowerCase())) {
    return 'web pages of other sites may not send requests to this server';
  }
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  if (isNameOf(name, server)) return undefined;
  return `the Host of the request is not a name of this server (${server.boundTo})`;
}

function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase();
}

function isNameOf(name: string, { boundTo, takesAnyName = false }: LocalServer): boolean {
  if (name === '') return false;
  if (LOOPBACK.test(name) || name === boundTo.toLowerCase()) return true;
  if (LOOPBACK.test(boundTo)) return false;
  if (takesAnyName) return true;
  const isAddress = isIP(name.replace(/^\[|\]$/g, '')) !== 0;
  // Nobody registers a name without a dot.
  return isAddress || !name.includes('.') || name === hostname().toLowerCase();
}
