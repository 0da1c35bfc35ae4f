/**
 * The only network access of an installer's jail: an egress to public addresses and to the
 * registries of the operator's npm settings, which may be private, through the operator's proxy if
 * there is one. Other addresses, such as those of a lock file, are refused.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { RE2JS } from 're2js';
import type { Env } from '../../../proto/common/env.ts';
import type { Log } from '../../../proto/common/log.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { type Upstream, upstreamOf } from '../../../proto/network/session-proxies.ts';
import { openEgress } from '../../jail/egress/egress-proxy.ts';
import { openListener } from '../../jail/egress/listener.ts';
import type { Route } from '../../jail/egress/routes.ts';
import type { Jail } from '../../jail/jail.ts';
import { chownTree } from '../../jail/spawn.ts';
import type { Place } from '../build-directory.ts';
import { buildError } from '../build-failure.ts';
import type { BuildLog } from '../log.ts';
import { type NpmSettings, readNpmSettings } from './npm-config.ts';

/** Refusals in a build's log, each once. Ours: a lock file may name thousands of addresses. */
const REFUSALS_MAX = 20;

export type InstallEgress = AsyncDisposable & {
  /** On the machine's loopback, for a jail without a network of its own. */
  localPort: number | undefined;
  /** A socket file, for a jail with a network of its own. */
  socket: string | undefined;
  /** Whether a request for a closed address was refused. */
  readonly isRefused: boolean;
};

/** Throws a BuildFailure when the operator's proxy is invalid. */
export async function openInstallEgress(options: {
  jail: Jail;
  env: Env;
  place: Pick<Place, 'directory' | 'uid'>;
  lines: Pick<BuildLog, 'line'>;
  log: Log;
}): Promise<InstallEgress> {
  const { jail, env, place, lines, log } = options;
  const settings = await readNpmSettings(env);
  const reported = new Set<string>();
  let isRefused = false;
  const egress = openEgress({
    allow: cidrList([]),
    named: settings.registries,
    log,
    onRefusal({ code, why }) {
      isRefused ||= code === 403;
      if (reported.has(why) || reported.size >= REFUSALS_MAX) return;
      reported.add(why);
      lines.line('warn', why);
    },
  });
  egress.steer({ routes: routesOf(settings) });
  await using opening = new AsyncDisposableStack();
  opening.defer(() => egress.close());
  const local = jail.hasOwnNetwork ? undefined : await openListener(egress.handle);
  opening.defer(() => void local?.close());
  const socket = local ? undefined : await listen(place, egress.handle, opening);
  const opened = opening.move();
  return {
    localPort: local && (local.address() as AddressInfo).port,
    socket,
    get isRefused() {
      return isRefused;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Opens a socket file that the build's jails may use. */
async function listen(
  { directory, uid }: Pick<Place, 'directory' | 'uid'>,
  serve: (socket: Socket) => void,
  opening: AsyncDisposableStack,
): Promise<string> {
  const path = join(directory, 'out');
  const server = createServer(serve);
  opening.defer(() => void server.close()); // removes the file
  await once(server.listen(path), 'listening');
  if (uid !== undefined) chownTree(uid, path);
  return path;
}

/** Chooses a proxy as npm and pnpm do. */
function routesOf({ proxy, plainProxy, noProxy }: NpmSettings): Route[] {
  const domains = noProxy.map((domain) => `(?:^|\\.)${RE2JS.quote(domain)}$`).join('|');
  const named = RE2JS.compile(domains, RE2JS.CASE_INSENSITIVE);
  const pattern = { find: (host: string) => named.matcher(host).find() };
  const straight = domains === '' ? [] : [{ pattern }];
  if (proxy !== undefined) return [...straight, { via: upstreamNamed(proxy) }];
  if (plainProxy === undefined) return [];
  return [...straight, { isPlain: true, via: upstreamNamed(plainProxy) }];
}

function upstreamNamed(text: string): Upstream {
  try {
    return upstreamOf(text.replace(/^socks(?:5h)?:/i, 'socks5:'), { isManaged: true });
  } catch (cause) {
    const problem = `the proxy of the service's npm settings ${(cause as Error).message}`;
    throw buildError(`${problem}; ask its operator to fix it`, cause);
  }
}
