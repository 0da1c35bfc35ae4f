/**
 * Why a caller cannot reach core, in one sentence for the operator that names the setting. It has
 * no address and no path, since GET /readyz shows it. A handshake that core refuses ends without a
 * reason: then the caller's own certificate is checked, and core's log has the rest.
 */
import type { X509Certificate } from 'node:crypto';
import type { CoreTls } from '../tls/core-tls.ts';
import { type PemFile, readCertificate } from '../tls/pem-files.ts';
import { Fault } from './errors.ts';

/** Reasons of a refused token. */
const REFUSED: readonly string[] = ['API_KEY_MISSING', 'API_KEY_INVALID', 'TOKEN_REQUIRED'];

/** What the caller uses; `tokenSetting` is the variable of its token. */
type CoreLink = {
  core: string;
  coreTls: CoreTls | undefined;
  tokenSetting: string;
};

/** Part of grpc-js's message -> the sentence after `core`. */
const PROBLEMS: readonly (readonly [RegExp, string])[] = [
  [
    /certificate has expired|certificate is not yet valid/,
    'has a certificate that is not valid now: renew the file of its TABERN_CORE_TLS_CERT_FILE, ' +
      'send it SIGHUP, and check both clocks',
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'has a certificate without that name: create it with the host of TABERN_CORE as a name',
  ],
  [
    /self-signed certificate|unable to (verify|get)|certificate signature/,
    'has a certificate that the authorities of TABERN_CORE_CA_FILE did not issue',
  ],
  [
    /alert certificate required/,
    'requires a client certificate: set TABERN_CORE_CLIENT_CERT_FILE and ' +
      'TABERN_CORE_CLIENT_KEY_FILE',
  ],
  [
    /Failed to load credentials/,
    'was not called: a file of TABERN_CORE_CA_FILE, or of the client certificate, cannot be used',
  ],
  [
    /wrong version number|packet length too long/,
    'serves no TLS: unset TABERN_CORE_CA_FILE, or set its TABERN_CORE_TLS_CERT_FILE',
  ],
];

const SILENT =
  'core does not answer: set TABERN_CORE to its address, or start it; its log has the reason';
const LATE =
  'core did not answer in time: its log has the reason, or TABERN_CORE is not its address';

/** Fields of a registration that core refused. */
const REFUSED_FIELDS: Readonly<Record<string, string>> = {
  runnerId:
    'TABERN_RUNNER_ID must be a name of the certificate of TABERN_CORE_CLIENT_CERT_FILE: set ' +
    'that name, or create the certificate with this one',
  address: 'core refused the host of TABERN_RUNNER_LISTEN: set one that gateways can reach',
};

/** Undefined when the error is not one of reaching core, or of registering a runner. */
export function coreProblem(error: unknown, link: CoreLink): string | undefined {
  if (!(error instanceof Fault)) return undefined;
  if (REFUSED.includes(error.reason)) {
    return `core refused the token: set ${link.tokenSetting} to core’s`;
  }
  if (error.reason === 'INVALID_FIELD') return REFUSED_FIELDS[String(error.facts['field'])];
  const isLate = error.reason === 'DEADLINE';
  if (error.reason !== 'CORE_UNAVAILABLE' && !isLate) return undefined;
  // a fault that core has sent has no cause on this side
  const isCores = error.cause === undefined && !isLate;
  if (isCores) return `core cannot work at present: ${error.message.replace(/\.$/, '')}`;
  const details = String((error.cause as { details?: unknown } | undefined)?.details ?? '');
  const known = PROBLEMS.find(([pattern]) => pattern.test(details));
  if (known) return `core ${known[1]}`;
  return ownProblem(link, details) ?? (isLate ? LATE : SILENT);
}

/** The handshake was refused: by the caller's own certificate, or for want of TLS. */
function ownProblem({ core, coreTls }: CoreLink, details: string): string | undefined {
  if (core.startsWith('unix:') || !/Failed to connect/.test(details)) return undefined;
  if (coreTls === undefined) {
    return 'core closed the connection: when it uses TLS, set TABERN_CORE_CA_FILE';
  }
  const { pair } = coreTls;
  return pair && problemOf(pair.cert);
}

/** Names the variable, and not the source, which may be a path. */
function problemOf(cert: PemFile): string {
  const name = 'TABERN_CORE_CLIENT_CERT_FILE';
  let read: X509Certificate;
  try {
    read = readCertificate(cert);
  } catch {
    return `${name} cannot be read: it must be a certificate in PEM`;
  }
  const { validFrom, validTo } = read;
  const now = Date.now();
  if (Date.parse(validTo) <= now || Date.parse(validFrom) > now) {
    return `${name} is a certificate for ${validFrom} to ${validTo}: renew it`;
  }
  return (
    `core closed the connection: ${name} must be a certificate of the authorities ` +
    'of its TABERN_CORE_CLIENT_CA_FILE, for clients; its log has the reason'
  );
}
