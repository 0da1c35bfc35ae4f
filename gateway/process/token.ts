/** The gateway token, which authenticates it to DeliveryService: a setting, or a file of core. */
import { join } from 'node:path';
import { readToken } from '../../proto/common/durable.ts';
import { ConfigError } from '../../proto/common/env.ts';
import type { GatewayConfig } from '../config.ts';

/** Throws a ConfigError when there is none. */
export function gatewayTokenOf({ gatewayToken, dataDir }: GatewayConfig): string {
  if (gatewayToken !== undefined) return gatewayToken;
  const path = join(dataDir, 'keys', 'gateway.token');
  try {
    return readToken(path);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`set TABERN_GATEWAY_TOKEN: cannot read ${path}`, { cause });
  }
}
