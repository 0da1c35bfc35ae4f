/**
 * The only way out of an installer's jail: an egress that reaches public addresses and the
 * registries that the operator's npm settings name, wherever these are; through the operator's
 * proxy, where there is one. What else a lock file or a package's metadata names is not asked.
 */
import type { ChildProcess } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { RE2JS } from 're2js';
import { cidrList } from '../proto/addresses.ts';
import type { Env } from '../proto/env.ts';
import type { Log } from '../proto/log.ts';
import { patternOf, type Upstream, upstreamOf } from '../proto/proxies.ts';
import type { BuildLog } from './build-log.ts';
import { BuildFailure } from './failure.ts';
import { openEgress } from './jail/egress.ts';
import { openInlet, takeInlet } from './jail/inlet.ts';
import type { Jail } from './jail/ladder.ts';
import type { Route } from './jail/routes.ts';
import { type NpmSettings, readNpmSettings } from './npm-settings.ts';

/** Told in a build's log, each once. Ours: a lock file may name thousands. */
const REFUSALS_MAX = 20;

export type InstallWay = AsyncDisposable & {
  /** Of the machine's loopback, where the jail has no network of its own. */
  localPort: number | undefined;
  /** Whether a closed address was asked for. */
  readonly isRefused: boolean;
  /** Takes what leaves the jail of an installer that was just started. Rejects when it cannot. */
  take(child: ChildProcess): Promise<void>;
};

/** Throws a BuildFailure when the operator's proxy is none. */
export async function openInstallWay(options: {
  jail: Jail;
  env: Env;
  lines: BuildLog;
  log: Log;
}): Promise<InstallWay> {
  const { jail, env, lines, log } = options;
  const settings = await readNpmSettings(env);
  const told = new Set<string>();
  let isRefused = false;
  const egress = openEgress({
    allow: cidrList([]),
    named: settings.registries,
    log,
    onRefusal({ code, why }) {
      isRefused ||= code === 403;
      if (told.has(why) || told.size >= REFUSALS_MAX) return;
      told.add(why);
      lines.line('warn', why);
    },
  });
  egress.steer({ routes: routesOf(settings) });
  const local = jail.hasOwnNetwork ? undefined : await openInlet(egress.handle);
  const opened = new AsyncDisposableStack();
  opened.defer(() => egress.close());
  opened.defer(() => void local?.close());
  return {
    localPort: local && (local.address() as AddressInfo).port,
    get isRefused() {
      return isRefused;
    },
    async take(child) {
      if (local) return;
      const inlet = await takeInlet(child, egress.handle);
      opened.defer(() => void inlet.close());
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** As npm and pnpm choose a proxy. */
function routesOf({ proxy, plainProxy, noProxy }: NpmSettings): Route[] {
  const domains = noProxy.map((domain) => `(?:^|\\.)${RE2JS.quote(domain)}$`).join('|');
  const straight = domains === '' ? [] : [{ pattern: patternOf(domains) }];
  if (proxy !== undefined) return [...straight, { via: upstreamNamed(proxy) }];
  if (plainProxy === undefined) return [];
  return [...straight, { isPlain: true, via: upstreamNamed(plainProxy) }];
}

function upstreamNamed(text: string): Upstream {
  try {
    return upstreamOf(text.replace(/^socks(?:5h)?:/i, 'socks5:'), { isManaged: true });
  } catch (cause) {
    const problem = `the proxy of the service's npm settings ${(cause as Error).message}`;
    throw new BuildFailure('BUILD_ERROR', `${problem}; ask its operator to mend it`, cause);
  }
}
