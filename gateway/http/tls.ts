/**
 * TLS from certificate files, reloaded at SIGHUP: open connections stay open, new ones use the new
 * certificate. When the new files are invalid, the old certificate stays in use and an error is
 * logged.
 */
import { readFileSync } from 'node:fs';
import type { Server, ServerOptions } from 'node:http';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';

/** Paths of PEM files: the certificate with its chain, and its key. */
export type TlsFiles = { certFile: string; keyFile: string };

/**
 * An HTTPS server with the interface of node's http server. Throws ConfigError when the files
 * cannot be used.
 */
export async function secureServer(
  files: TlsFiles,
  options: ServerOptions,
  log: Log,
): Promise<Server> {
  const { createServer } = await import('node:https');
  // ALPN offers HTTP/1.1 only: the server does not speak h2.
  const http = { ...options, ALPNProtocols: ['http/1.1'] };
  // Before its TLS handshake, a connection is unknown to HTTP: neither timeouts nor a drain close
  // it.
  const handshakeTimeout = options.headersTimeout;
  const secure = { ...http, ...readPair(files), ...(handshakeTimeout && { handshakeTimeout }) };
  const server = createServer(secure);
  const reload = (): void => {
    try {
      server.setSecureContext(readPair(files));
      log.info(files, 'reloaded the certificate');
    } catch (error) {
      log.error({ err: error }, 'reloading the certificate failed; the old one stays in use');
    }
  };
  process.on('SIGHUP', reload);
  server.once('close', () => process.off('SIGHUP', reload));
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'no TLS'));
  return server as unknown as Server; // https.Server has the same methods, by documentation
}

/** The pair is verified before it is used. */
function readPair({ certFile, keyFile }: TlsFiles): { cert: Buffer; key: Buffer } {
  const pair = {
    cert: read('TABERN_TLS_CERT_FILE', certFile),
    key: read('TABERN_TLS_KEY_FILE', keyFile),
  };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const { message } = cause as Error;
    throw new ConfigError(`TABERN_TLS_CERT_FILE and TABERN_TLS_KEY_FILE: ${message}`, { cause });
  }
  return pair;
}

function read(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigError(`${name}: cannot read ${path}`, { cause });
  }
}
