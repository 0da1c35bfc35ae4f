/** The files by which a caller of core checks core's certificate and shows its own. */
import { ConfigError, type Env } from '../common/env.ts';
import {
  type PemFile,
  pairFiles,
  pemFile,
  readAuthorities,
  readPair,
  type TlsFiles,
} from './pem-files.ts';

export type CoreTls = {
  /** Authorities of the certificates of core and of runners. */
  ca: PemFile;
  /** Client certificate for core; a runner's session server uses the same pair. */
  pair: TlsFiles | undefined;
};

/** Undefined when not set. Throws a ConfigError for files that cannot be used. */
export function coreTls(env: Env): CoreTls | undefined {
  const ca = pemFile(env, 'TABERN_CORE_CA_FILE');
  const pair = pairFiles(env, 'TABERN_CORE_CLIENT_CERT_FILE', 'TABERN_CORE_CLIENT_KEY_FILE');
  if (ca === undefined) {
    if (pair === undefined) return undefined;
    throw new ConfigError(`${pair.cert.source} goes together with TABERN_CORE_CA_FILE: set both`);
  }
  readAuthorities(ca);
  if (pair) readPair(pair);
  return { ca, pair };
}
