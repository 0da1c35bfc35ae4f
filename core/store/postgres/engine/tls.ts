/**
 * TLS to PostgreSQL: by the sslmode of the URL, as libpq, without a file of it. With authorities of
 * TABERN_DATABASE_CA_FILE the server is verified whatever the sslmode says.
 */
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

const VERIFYING = ['verify-ca', 'verify-full'];

/** For the driver; undefined: it reads the URL. */
export function tlsOf(url: string, ca: string | undefined): ConnectionOptions | undefined {
  const { hostname, searchParams } = new URL(url);
  const isVerifying = VERIFYING.includes(searchParams.get('sslmode') ?? '');
  if (ca === undefined && !isVerifying) return undefined;
  const host = hostname.replace(/^\[|\]$/g, '');
  // the driver names a host, and no address: `localhost` would be expected in the certificate
  return { ...(ca !== undefined && { ca }), ...(isIP(host) !== 0 && { host }) };
}
