/**
 * Reloads the certificate of a TLS server at SIGHUP: open connections stay open, new ones use the
 * new files. When these are invalid, the old ones stay in use and an error is logged.
 */
import type { SecureContextOptions, Server } from 'node:tls';
import type { Log } from '../common/log.ts';

/** A caller of core needs no signal, and must not end by one. */
export function ignoreHangup(log: Log): void {
  process.on('SIGHUP', () => log.info('certificates for core are read again within a minute'));
}

/** Until the server is closed. `read` throws a ConfigError for files that cannot be used. */
export function reloadAtHangup(
  server: Pick<Server, 'setSecureContext' | 'once'>,
  read: () => SecureContextOptions,
  log: Log,
): void {
  const reload = (): void => {
    try {
      server.setSecureContext(read());
      log.info('reloaded the certificate');
    } catch (error) {
      log.error({ err: error }, 'reloading the certificate failed; the old one stays in use');
    }
  };
  process.on('SIGHUP', reload);
  server.once('close', () => process.off('SIGHUP', reload));
}
