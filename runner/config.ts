/** The runner's settings, read once at start. */
import { noAccess, readToken } from '../proto/common/durable.ts';
import { ConfigError, type Env, type Place } from '../proto/common/env.ts';
import { coreAddress, readSettings } from '../proto/common/settings/read.ts';
import { sourceOf } from '../proto/common/settings/sources.ts';
import { isLoopback } from '../proto/network/loopback.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { coreTls } from '../proto/tls/core-tls.ts';
import type { TlsFiles } from '../proto/tls/pem-files.ts';
import { OWN_KIND } from './functions/runtime.ts';

/** For commands that call no core: the setting is required. */
export const NO_TOKEN = { TABERN_RUNNER_TOKEN: 'none'.repeat(8) };

/** Without `tls` on loopback only. */
export type SessionListen = Place & { tls: TlsFiles | undefined };

export type Config = ReturnType<typeof readConfig>;

/** The variables of the process, which only this file reads. */
export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

/** Throws ConfigError. */
export function readConfig(env: Env = environment()) {
  const { data, browserAllowCidrs, runnerListen, runnerToken, ...settings } = readSettings(
    env,
    'runner',
  );
  const { browserMemoryMb, browserMemoryMaxMb, ...rest } = settings;
  return {
    ...rest,
    dataDir: data,
    core: coreAddress({ data, core: rest.core }),
    coreTls: coreTls(env),
    token: runnerToken ?? tokenOf(data),
    /** The runtime of handlers. */
    engine: rest.engine ?? OWN_KIND,
    /** Of one session's browser; undefined without a limit. */
    browserMemoryBytes: browserMemoryMb === 0 ? undefined : browserMemoryMb * 2 ** 20,
    /** Of a larger one, at most; never less than that of a usual one. */
    browserMemoryMaxBytes: Math.max(browserMemoryMb, browserMemoryMaxMb) * 2 ** 20,
    /** The address of the session server for gateways on other machines; else a socket file. */
    listen: runnerListen && listenOf(env, runnerListen),
    /** Private addresses that pages and handlers may reach. */
    allow: cidrList(browserAllowCidrs ?? []),
    /** The whole environment, for npm's settings. */
    env,
  };
}

/** Signing keys pass this address: only on loopback may they be in the clear. */
function listenOf(env: Env, place: Place): SessionListen {
  const tls = coreTls(env)?.pair;
  if (tls !== undefined || isLoopback(place.host)) return { ...place, tls };
  const { label } = sourceOf(env, 'TABERN_RUNNER_LISTEN') ?? { label: 'TABERN_RUNNER_LISTEN' };
  throw new ConfigError(
    `${label} needs TLS on ${place.host}: set TABERN_CORE_CA_FILE, TABERN_CORE_CLIENT_CERT_FILE ` +
      'and TABERN_CORE_CLIENT_KEY_FILE (`tabern certs create` makes them)',
  );
}

function tokenOf(dataDir: string): string {
  const path = `${dataDir}/keys/runner.token`;
  try {
    return readToken(path);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    const denied = noAccess(cause, dataDir);
    if (denied !== undefined) throw new ConfigError(denied, { cause });
    throw new ConfigError(
      `no runner token: start core first, which makes ${path}, or set TABERN_RUNNER_TOKEN`,
      { cause },
    );
  }
}
