/**
 * What an operator can set of the runner. Read once, at start. Every option is in README.md with
 * its unit and reason.
 */
import type { BlockList } from 'node:net';
import { resolve } from 'node:path';
import { readToken } from '../proto/common/durable.ts';
import {
  ConfigError,
  choice,
  type Env,
  integer,
  list,
  type Place,
  place,
  text,
} from '../proto/common/env.ts';
import { type Level, LOG_LEVELS } from '../proto/common/log.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { type Upstream, upstreamOf } from '../proto/network/session-proxies.ts';
import { OWN_KIND } from './functions/runtime.ts';

/** Ours: ten times a Chrome of one ordinary page, and room for a heavy one. */
const BROWSER_MEMORY_MIB = 4_096;
const EASYLIST = 'https://easylist.to/easylist/easylist.txt';

export type Config = {
  /** TABERN_DATA, ./tabern_data. Absolute. */
  dataDir: string;
  /** TABERN_CORE, unix:<data>/core.sock: as grpc-js takes addresses. */
  core: string;
  /** TABERN_RUNNER_TOKEN or _FILE, else <data>/keys/runner.token. */
  token: string;
  /** TABERN_SANDBOX, auto. */
  sandbox: 'auto' | 'bwrap' | 'landlock' | 'none';
  /** TABERN_ENGINE, what runs the runner itself: what runs handlers. */
  engine: 'node' | 'deno';
  /** TABERN_ISOLATION, warm: whether a run may have a thread that another had before. */
  isolation: 'warm' | 'fresh';
  /** TABERN_CHROME: path of the browser; found when not set. */
  chrome: string | undefined;
  /** TABERN_CHROME_SPARES, 2: started browsers that wait for an invocation. */
  chromeSpares: number;
  /** TABERN_SESSION_SPARES, 1: the same for sessions, which take Chromium where it is installed. */
  sessionSpares: number;
  /** TABERN_INVOCATIONS_MAX, 4: invocations that run at once. */
  invocationsMax: number;
  /** TABERN_SESSIONS_MAX, 25: sessions that run at once, beside invocations'. */
  sessionsMax: number;
  /** TABERN_BROWSER_MEMORY_MB, 4096: that a session's browser may use; undefined: any. */
  browserMemoryBytes: number | undefined;
  /** TABERN_SESSION_GRACE_MS, 3000: for a client to come back after the last one has left. */
  sessionGraceMs: number;
  /** TABERN_RUNNER_LISTEN: where gateways on other machines reach sessions; none: a socket file. */
  listen: { host: string; port: number } | undefined;
  /** TABERN_BUILDS_MAX, 1: builds that run at once. */
  buildsMax: number;
  /** TABERN_HOST_SPARES, 1: started function hosts that wait for a project. */
  hostSpares: number;
  /** TABERN_PROXY or _FILE, none: the proxy of sessions that ask for a managed one. */
  proxy: Upstream | undefined;
  /** TABERN_AD_LISTS, EasyList's address: files and addresses of filter lists for blockAds. */
  adLists: readonly string[];
  /** TABERN_BROWSER_ALLOW_CIDRS, none: private addresses that pages and handlers may reach. */
  allow: BlockList;
  /** TABERN_LOG_LEVEL, info. */
  logLevel: Level;
  /** TABERN_METRICS_LISTEN, none: as of the gateway. */
  metricsListen: Place | undefined;
  /** The whole environment, for what npm reads of it. */
  env: Env;
};

/** Throws ConfigError. */
export function readConfig(env: Env = process.env): Config {
  const dataDir = resolve(text(env, 'TABERN_DATA') ?? './tabern_data');
  const count = (name: string, value: number, min: number): number =>
    integer(env, name, { default: value, min, max: 256 });
  return {
    dataDir,
    core: text(env, 'TABERN_CORE') ?? `unix:${dataDir}/core.sock`,
    token: text(env, 'TABERN_RUNNER_TOKEN') ?? tokenOf(`${dataDir}/keys/runner.token`),
    sandbox: choice(env, 'TABERN_SANDBOX', ['auto', 'bwrap', 'landlock', 'none'], 'auto'),
    engine: choice(env, 'TABERN_ENGINE', ['node', 'deno'], OWN_KIND),
    isolation: choice(env, 'TABERN_ISOLATION', ['warm', 'fresh'], 'warm'),
    chrome: text(env, 'TABERN_CHROME'),
    chromeSpares: count('TABERN_CHROME_SPARES', 2, 0),
    sessionSpares: count('TABERN_SESSION_SPARES', 1, 0),
    invocationsMax: count('TABERN_INVOCATIONS_MAX', 4, 1),
    sessionsMax: count('TABERN_SESSIONS_MAX', 25, 1),
    browserMemoryBytes: memory(env, 'TABERN_BROWSER_MEMORY_MB'),
    sessionGraceMs: integer(env, 'TABERN_SESSION_GRACE_MS', {
      default: 3_000,
      min: 0,
      max: 60_000,
    }),
    listen: address(env, 'TABERN_RUNNER_LISTEN'),
    buildsMax: count('TABERN_BUILDS_MAX', 1, 1),
    hostSpares: count('TABERN_HOST_SPARES', 1, 0),
    proxy: proxyOf(env),
    adLists: text(env, 'TABERN_AD_LISTS') === undefined ? [EASYLIST] : list(env, 'TABERN_AD_LISTS'),
    allow: cidrs(env, 'TABERN_BROWSER_ALLOW_CIDRS'),
    metricsListen: place(env, 'TABERN_METRICS_LISTEN'),
    logLevel: choice(env, 'TABERN_LOG_LEVEL', LOG_LEVELS, 'info'),
    env,
  };
}

/** In MiB, 0 for no limit. */
function memory(env: Env, name: string): number | undefined {
  const mib = integer(env, name, { default: BROWSER_MEMORY_MIB, min: 0, max: 1 << 20 });
  return mib === 0 ? undefined : mib * 2 ** 20;
}

/** Gateways dial it as it stands here: so no address that means every interface, and no port 0. */
function address(env: Env, name: string): Config['listen'] {
  const value = text(env, name);
  if (value === undefined) return undefined;
  const url = URL.parse(`tcp://${value}`);
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const isAnywhere = host === '' || host === '0.0.0.0' || host === '::';
  if (!url || isAnywhere || !Number(url.port) || value !== `${url.hostname}:${url.port}`) {
    throw new ConfigError(`${name} must be host:port, as gateways reach this machine`);
  }
  return { host, port: Number(url.port) };
}

function proxyOf(env: Env): Upstream | undefined {
  const server = text(env, 'TABERN_PROXY');
  try {
    return server === undefined ? undefined : upstreamOf(server, { isManaged: true });
  } catch (cause) {
    throw new ConfigError(`TABERN_PROXY ${(cause as Error).message}`, { cause });
  }
}

function cidrs(env: Env, name: string): BlockList {
  try {
    return cidrList(list(env, name));
  } catch (cause) {
    throw new ConfigError(`${name}: ${(cause as Error).message}`, { cause });
  }
}

function tokenOf(path: string): string {
  try {
    return readToken(path);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(
      `no runner token: start core first, which makes ${path}, or set TABERN_RUNNER_TOKEN`,
      { cause },
    );
  }
}
