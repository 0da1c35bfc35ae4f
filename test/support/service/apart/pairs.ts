/** Certificates of roles in a directory, by the code of `tabern certs`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issue, newAuthority } from '../../../../gateway/cli/operator/issue.ts';
import type { PemFile, TlsFiles } from '../../../../proto/tls/pem-files.ts';

const DAY_MS = 86_400_000;

export type Pairs = {
  ca: PemFile;
  /** A pair of this authority; `startsAt`: of its validity of a day, in Unix ms. */
  pair(names: readonly [string, ...string[]], startsAt?: number): Promise<TlsFiles>;
};

/** Another authority for each directory. */
export async function openPairs(dir: string): Promise<Pairs> {
  mkdirSync(dir, { recursive: true });
  const now = Date.now();
  const authority = await newAuthority(now);
  let made = 0;
  const write = (name: string, text: string): PemFile => {
    const path = join(dir, name);
    writeFileSync(path, text, { mode: 0o600 });
    return { path, source: name };
  };
  return {
    ca: write('ca.crt', authority.cert),
    async pair(names, startsAt = now) {
      made += 1;
      const { cert, key } = await issue(authority, { names, days: 1, at: startsAt });
      return { cert: write(`${made}.crt`, cert), key: write(`${made}.key`, key) };
    },
  };
}

/** Ended a day ago. */
export const EXPIRED = Date.now() - 2 * DAY_MS;

/** The variables of a caller of core. */
export function callerVariables(ca: PemFile, pair?: TlsFiles): Record<string, string> {
  const own = pair && {
    TABERN_CORE_CLIENT_CERT_FILE: pair.cert.path,
    TABERN_CORE_CLIENT_KEY_FILE: pair.key.path,
  };
  return { TABERN_CORE_CA_FILE: ca.path, ...own };
}

/** The variables of a core; with `clientCa` only callers with a certificate of it reach it. */
export function coreVariables(pair: TlsFiles, clientCa?: PemFile): Record<string, string> {
  return {
    TABERN_CORE_TLS_CERT_FILE: pair.cert.path,
    TABERN_CORE_TLS_KEY_FILE: pair.key.path,
    ...(clientCa && { TABERN_CORE_CLIENT_CA_FILE: clientCa.path }),
  };
}
