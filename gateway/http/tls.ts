/** TLS of the gateway, from certificate files; proto/tls/reload.ts reloads them at SIGHUP. */
import type { Server, ServerOptions } from 'node:http';
import type { Log } from '../../proto/common/log.ts';
import { readPair, type TlsFiles } from '../../proto/tls/pem-files.ts';
import { reloadAtHangup } from '../../proto/tls/reload.ts';

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
  reloadAtHangup(server, () => readPair(files), log);
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'the TLS handshake failed'));
  return server as unknown as Server; // https.Server has the same methods, by documentation
}
