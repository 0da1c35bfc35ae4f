/**
 * Validation of a session's proxies: core calls it when a session is created, the runner when it
 * connects. Pure.
 */

/** An external proxy. */
export type Upstream = {
  protocol: 'http' | 'https' | 'socks5';
  host: string;
  port: number;
  username?: string;
  password?: string;
  /** The operator's proxy; its bytes count as the session's proxyBytes. */
  isManaged: boolean;
};

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;

/**
 * `http://user:secret@host:3128`, also https: and socks5:. The default scheme is http. Throws a
 * sentence without the text, which may contain a password.
 */
export function upstreamOf(
  server: string,
  given: { username?: string; password?: string; isManaged: boolean },
): Upstream {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(server) ? server : `http://${server}`);
  const protocol = url?.protocol.slice(0, -1);
  if (!url || (protocol !== 'http' && protocol !== 'https' && protocol !== 'socks5')) {
    throw new TypeError('is not the address of an http, https or socks5 proxy');
  }
  const { isManaged } = given;
  const username = given.username ?? decoded(url.username);
  const password = given.password ?? decoded(url.password);
  return {
    protocol,
    host: url.hostname,
    port: Number(url.port || DEFAULT_PORTS[protocol]),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    isManaged,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an invalid percent escape is literal
  }
}
