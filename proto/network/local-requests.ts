/**
 * Checks of requests to a keyless server on a user's machine. Any web page in a browser there can
 * send requests to it, and a page's host name can resolve to it (DNS rebinding). So requests from
 * other sites are refused, and requests for host names that others may own. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|\[?::1\]?|localhost|.+\.localhost)$/i;

export type LocalServer = {
  /** The configured listening address. */
  boundTo: string;
  /** In the operator's network, whose host names are not known here. */
  takesAnyName?: boolean;
};

/** Why a request is refused, as a sentence; undefined when it is allowed. */
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
  // Names without a dot cannot be registered.
  return isAddress || !name.includes('.') || name === hostname().toLowerCase();
}
