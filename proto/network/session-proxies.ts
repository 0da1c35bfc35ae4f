/**
 * What a session's proxies may say: core asks when one is created, the runner when it goes their
 * way. Pure.
 */

/** A proxy that connections are handed to. */
export type Upstream = {
  protocol: 'http' | 'https' | 'socks5';
  host: string;
  port: number;
  username?: string;
  password?: string;
  /** The operator's own; its bytes are the session's proxyBytes. */
  isManaged: boolean;
};

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;

/**
 * `http://user:secret@host:3128`, likewise https: and socks5:. Without a scheme it is http. Throws
 * a sentence that does not hold the text: it may carry a password.
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
    return text; // a stray percent sign stands for itself
  }
}
