/**
 * The operator's client of core, over its socket and with the operator token. Both are in the data
 * directory, so read access to it makes a user the operator; for a core elsewhere both are options.
 */
import { join, resolve } from 'node:path';
import { noAccess, readToken } from '../../../proto/common/durable.ts';
import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { coreAddress, readSetting } from '../../../proto/common/settings/read.ts';
import { coreProblem } from '../../../proto/rpc/core-problem.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../../../proto/rpc/services.ts';
import { type CoreTls, coreTls } from '../../../proto/tls/core-tls.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';

export type OperatedCore = { operators: Clients['operators']; call: CallOptions };

export type Place = { dataDir: string; address: string };

/** An option takes precedence over its variable. */
export function placeOf(given: Given, env: Env): Place {
  const { data, core } = given;
  const dataDir = typeof data === 'string' ? resolve(data) : readSetting(env, 'DATA');
  const address = typeof core === 'string' ? core : readSetting(env, 'CORE');
  return { dataDir, address: coreAddress({ data: dataDir, core: address }) };
}

/** Throws an Exit with advice when core is unreachable or refuses. */
export async function withCore<T>(
  given: Given,
  env: Env,
  work: (core: OperatedCore) => Promise<T>,
): Promise<T> {
  const place = placeOf(given, env);
  const token = tokenOf(place, env);
  const tls = coreTls(env);
  using channel = new Channel(place.address, tls);
  const { operators } = remoteClients(channel);
  try {
    return await work({ operators, call: { metadata: { authorization: `Bearer ${token}` } } });
  } catch (error) {
    if (error instanceof Fault) throw exitOf(error, place, tls);
    throw error;
  }
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof Exit && error.code === EXIT.port;
}

function tokenOf({ dataDir }: Place, env: Env): string {
  const given = readSetting(env, 'OPERATOR_TOKEN');
  if (given !== undefined) return given;
  const path = join(dataDir, 'keys', 'operator.token');
  try {
    return readToken(path);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    const denied = noAccess(cause, dataDir);
    if (denied !== undefined) throw new Exit(EXIT.config, denied, cause);
    const why = `no ${path}: set --data to the data directory, or start the service once`;
    throw new Exit(EXIT.port, why, cause);
  }
}

function exitOf(fault: Fault, { address }: Place, tls: CoreTls | undefined): Exit {
  const link = { core: address, coreTls: tls, tokenSetting: 'TABERN_OPERATOR_TOKEN' };
  switch (fault.reason) {
    case 'CORE_UNAVAILABLE':
    case 'DEADLINE':
      return new Exit(
        EXIT.port,
        address.startsWith('unix:')
          ? `core cannot be reached at ${address}: is the service running? Check --data and --core`
          : `core cannot be reached at ${address}: ${coreProblem(fault, link)}`,
        fault,
      );
    case 'API_KEY_INVALID':
    case 'TOKEN_REQUIRED':
      return new Exit(
        EXIT.failed,
        "core refused the operator's token: set TABERN_OPERATOR_TOKEN, or --data, to core's own",
        fault,
      );
    case 'NOT_IMPLEMENTED':
      return new Exit(EXIT.failed, 'core is older than this command: upgrade the service', fault);
    default:
      return new Exit(EXIT.failed, fault.message, fault);
  }
}
