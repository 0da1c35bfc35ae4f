/** The runner's settings, read once at start. */
import { noAccess, readToken } from '../proto/common/durable.ts';
import { ConfigError, type Env } from '../proto/common/env.ts';
import { coreAddress, readSettings } from '../proto/common/settings/read.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { OWN_KIND } from './functions/runtime.ts';

export type Config = ReturnType<typeof readConfig>;

/** Throws ConfigError. */
export function readConfig(env: Env = process.env) {
  const { data, browserAllowCidrs, runnerListen, runnerToken, ...settings } = readSettings(
    env,
    'runner',
  );
  const { browserMemoryMb, browserMemoryMaxMb, ...rest } = settings;
  return {
    ...rest,
    dataDir: data,
    core: coreAddress({ data, core: rest.core }),
    token: runnerToken ?? tokenOf(data),
    /** The runtime of handlers. */
    engine: rest.engine ?? OWN_KIND,
    /** Of one session's browser; undefined without a limit. */
    browserMemoryBytes: browserMemoryMb === 0 ? undefined : browserMemoryMb * 2 ** 20,
    /** Of a larger one, at most; never less than that of a usual one. */
    browserMemoryMaxBytes: Math.max(browserMemoryMb, browserMemoryMaxMb) * 2 ** 20,
    /** The address of the session server for gateways on other machines; else a socket file. */
    listen: runnerListen,
    /** Private addresses that pages and handlers may reach. */
    allow: cidrList(browserAllowCidrs ?? []),
    /** The whole environment, for npm's settings. */
    env,
  };
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
