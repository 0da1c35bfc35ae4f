/**
 * TLS by certificate files, read again at SIGHUP: connections that are open go on, new ones get the
 * new certificate. Files that do not fit leave what is served as it is, and say so.
 */
import { readFileSync } from 'node:fs';
import type { Server, ServerOptions } from 'node:http';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';

/** Paths of PEM files: the certificate with those that lead to its root, and its key. */
export type TlsFiles = { certFile: string; keyFile: string };

/** A server as node's http has it, over TLS. Throws ConfigError when the files cannot be used. */
export async function secureServer(
  files: TlsFiles,
  options: ServerOptions,
  log: Log,
): Promise<Server> {
  const { createServer } = await import('node:https');
  // ALPN names HTTP/1.1 alone: nothing here speaks h2 to browsers.
  const http = { ...options, ALPNProtocols: ['http/1.1'] };
  // Before its handshake a connection is none of HTTP's: neither its times nor a drain ends it.
  const handshakeTimeout = options.headersTimeout;
  const secure = { ...http, ...readPair(files), ...(handshakeTimeout && { handshakeTimeout }) };
  const server = createServer(secure);
  const reload = (): void => {
    try {
      server.setSecureContext(readPair(files));
      log.info(files, 'the certificate was read again');
    } catch (error) {
      log.error({ err: error }, 'the certificate stays as it was');
    }
  };
  process.on('SIGHUP', reload);
  server.once('close', () => process.off('SIGHUP', reload));
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'no TLS'));
  return server as unknown as Server; // https.Server has all that is used of it, by documentation
}

/** Proved to be a pair before anybody is shown it. */
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
