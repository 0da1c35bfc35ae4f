/**
 * How a caller connects to core. A socket file is protected by its mode. Over a network TLS is
 * always used; on loopback when the authorities of core's certificate are set. Files are read again
 * while the process runs, so that a renewed certificate needs no restart.
 */
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import {
  type ChannelCredentials,
  type ChannelOptions,
  credentials,
  experimental,
} from '@grpc/grpc-js';
import { hostIn, isLoopback } from '../network/loopback.ts';
import type { CoreTls } from '../tls/core-tls.ts';

/** In milliseconds between two reads of the files. Ours. */
const REFRESH_MS = 60_000;
/**
 * A machine that is gone answers no ping: its connection ends after both, long before the deadline
 * of a request, which may be sent again to another core. Ours: a busy core answers in time.
 */
const KEEP_ALIVE = { 'grpc.keepalive_time_ms': 5_000, 'grpc.keepalive_timeout_ms': 10_000 };
/** Sent in the handshake for an address, since TLS sends names only. */
const ANY_NAME = 'core.tabern';

export type Connecting = { credentials: ChannelCredentials; options: ChannelOptions };

export function connecting(address: string, tls: CoreTls | undefined): Connecting {
  const host = hostIn(address);
  if (address.startsWith('unix:')) {
    return { credentials: credentials.createInsecure(), options: {} };
  }
  if (tls === undefined) {
    const isPlain = isLoopback(host);
    const how = isPlain ? credentials.createInsecure() : credentials.createSsl();
    return { credentials: how, options: KEEP_ALIVE };
  }
  const { ca, pair } = tls;
  const files = new experimental.FileWatcherCertificateProvider({
    caCertificateFile: ca.path,
    certificateFile: pair?.cert.path,
    privateKeyFile: pair?.key.path,
    refreshIntervalMs: REFRESH_MS,
  });
  const isAddress = isIP(host) !== 0;
  const how = experimental.createCertificateProviderChannelCredentials(
    files,
    pair === undefined ? null : files,
    isAddress ? { checkServerIdentity: (_, cert) => checkServerIdentity(host, cert) } : {},
  );
  const named = isAddress ? { 'grpc.ssl_target_name_override': ANY_NAME } : {};
  return { credentials: how, options: { ...KEEP_ALIVE, ...named } };
}
