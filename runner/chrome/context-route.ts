/** The proxy and the bypass rules that a client gives a browser context, as a route. Pure. */
import { upstreamOf } from '../../proto/proxies.ts';
import type { Route } from '../jail/routes.ts';

const BYPASS_MAX_CHARS = 8_192;

/** Undefined: the session's way. Throws a sentence for the client, without the proxy's password. */
export function routeOf(server: string, bypass: string): Route | undefined {
  if (/^direct:\/\/\/?$/i.test(server.trim())) return undefined;
  if (/[,;=\s]/.test(server.trim())) throw new TypeError('one proxy can be named, for all schemes');
  const via = upstreamOf(server.trim(), { isManaged: false });
  const isBypassed = bypassOf(bypass);
  return { via, pattern: { find: (host) => !isBypassed(host) } };
}

/** Hosts that Chrome's rules name: `a.test`, `*.a.test`, `.a.test`, `10.0.0.1`, `<local>`. */
function bypassOf(text: string): (host: string) => boolean {
  if (text.length > BYPASS_MAX_CHARS) {
    throw new TypeError(`proxyBypassList has at most ${BYPASS_MAX_CHARS} characters`);
  }
  const rules = text
    .toLowerCase()
    .split(/[,;\s]+/)
    .filter((rule) => rule !== '' && rule !== '<-loopback>');
  const wrong = rules.find((rule) => rule !== '<local>' && !/^[\w.*-]+$/.test(rule));
  if (wrong !== undefined) throw new TypeError('proxyBypassList names hosts: a.test, *.a.test');
  const names = new Set(rules.filter((rule) => !/[*<]|^\./.test(rule)));
  const ends = rules
    .filter((rule) => /^\*?\.[^*]+$/.test(rule))
    .map((rule) => rule.replace('*', ''));
  const others = rules.filter((rule) => rule.includes('*') && !/^\*\.[^*]+$/.test(rule));
  if (others.some((rule) => rule !== '*')) {
    throw new TypeError('proxyBypassList takes a * before a dot alone, or by itself');
  }
  const isLocal = rules.includes('<local>');
  return (host) =>
    others.length > 0 ||
    names.has(host) ||
    ends.some((end) => host.endsWith(end)) ||
    (isLocal && !/[.:]/.test(host));
}
