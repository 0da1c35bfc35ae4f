/**
 * Which certificates of runners the gateway trusts: issued by the authorities of
 * TABERN_CORE_CA_FILE (or the system's), with the runner's id as a name. The file is read again
 * while the gateway runs.
 */
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Log } from '../../proto/common/log.ts';
import type { CoreTls } from '../../proto/tls/core-tls.ts';
import { readAuthorities } from '../../proto/tls/pem-files.ts';

/** In milliseconds between two reads, as for core. Ours. */
const REFRESH_MS = 60_000;

export type RunnerTrust = {
  context(): SecureContext;
  /** Logs why a connection to a runner failed. */
  report(error: unknown, runnerId: string): void;
};

export function openRunnerTrust(tls: CoreTls | undefined, log: Log): RunnerTrust {
  const read = () => createSecureContext(tls && { ca: readAuthorities(tls.ca) });
  let known = read();
  let readAt = performance.now();
  return {
    context() {
      if (performance.now() - readAt < REFRESH_MS) return known;
      readAt = performance.now();
      try {
        known = read();
      } catch (error) {
        log.error({ err: error }, 'reading the authorities of runners failed: the old ones stay');
      }
      return known;
    },
    report(error, runnerId) {
      const { code, message } = error as NodeJS.ErrnoException;
      log.warn({ runnerId, code, error: message }, problemOf(code));
    },
  };
}

/** A sentence that names the setting. */
function problemOf(code: string | undefined): string {
  switch (code) {
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return 'the certificate of a runner is not valid now: renew its TABERN_CORE_CLIENT_CERT_FILE';
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'the certificate of a runner has another name than its id: see TABERN_RUNNER_ID';
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'CERT_SIGNATURE_FAILURE':
      return 'the certificate of a runner is not of the authorities of TABERN_CORE_CA_FILE';
    default:
      return 'a runner cannot be reached at its TABERN_RUNNER_LISTEN';
  }
}
