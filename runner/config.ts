/** The runner's settings, as the runner uses them. Read once, at start. */
import { readToken } from '../proto/common/durable.ts';
import { ConfigError, type Env } from '../proto/common/env.ts';
import { coreAddress, readSettings } from '../proto/common/settings/read.ts';
import { cidrList } from '../proto/network/public-addresses.ts';
import { OWN_KIND } from './functions/runtime.ts';

export type Config = ReturnType<typeof readConfig>;

/** Throws ConfigError. */
export function readConfig(env: Env = process.env) {
  const { data, browserMemoryMb, browserAllowCidrs, runnerListen, runnerToken, ...rest } =
    readSettings(env, 'runner');
  return {
    ...rest,
    dataDir: data,
    core: coreAddress({ data, core: rest.core }),
    token: runnerToken ?? tokenOf(`${data}/keys/runner.token`),
    /** What runs handlers. */
    engine: rest.engine ?? OWN_KIND,
    /** What a session's browser may use; undefined: any. */
    browserMemoryBytes: browserMemoryMb === 0 ? undefined : browserMemoryMb * 2 ** 20,
    /** Where gateways on other machines reach sessions; none: a socket file. */
    listen: runnerListen,
    /** Private addresses that pages and handlers may reach. */
    allow: cidrList(browserAllowCidrs ?? []),
    /** The whole environment, for what npm reads of it. */
    env,
  };
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
