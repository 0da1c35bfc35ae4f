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

/** A PEM file; `source` is the flag, variable or line of the settings file that names it. */
type PemFile = { path: string; source: string };
/** The certificate with its chain, and its key. */
export type TlsFiles = { cert: PemFile; key: PemFile };

/** An HTTPS server as node's http server. Throws ConfigError when the files cannot be used. */
export async function secureServer(
  files: TlsFiles,
  options: ServerOptions,
  log: Log,
): Promise<Server> {
  const { createServer } = await import('node:https');
  const server = createServer({
    ...options,
    ...readPair(files),
    // The server does not speak h2.
    ALPNProtocols: ['http/1.1'],
    // Before its TLS handshake, a connection is unknown to HTTP: neither timeouts nor a drain close
    // it.
    handshakeTimeout: options.headersTimeout,
  });
  const reload = (): void => {
    try {
      server.setSecureContext(readPair(files));
      log.info({ certFile: files.cert.path, keyFile: files.key.path }, 'reloaded the certificate');
    } catch (error) {
      log.error({ err: error }, 'reloading the certificate failed; the old one stays in use');
    }
  };
  process.on('SIGHUP', reload);
  server.once('close', () => process.off('SIGHUP', reload));
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'the TLS handshake failed'));
  return server as unknown as Server; // https.Server has the same methods, by documentation
}

/** The pair is verified before it is used. */
function readPair({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  const pair = { cert: read(cert), key: read(key) };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const { message } = cause as Error;
    throw new ConfigError(`${cert.source} and ${key.source}: ${message}`, { cause });
  }
  return pair;
}

function read({ path, source }: PemFile): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigError(`${source}: cannot read ${path}`, { cause });
  }
}
