/**
 * The gRPC servers: unix:<data>/core.sock, mode 0600, for the runner and callers on this machine,
 * and TABERN_CORE_LISTEN, with TLS, for roles on others, where no request is read before its caller
 * is authenticated. They are two, so that a call says which of them received it.
 * Includes the standard health and reflection services, so that grpcurl and probes need no .proto
 * files.
 */
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import { ConfigError } from '../../proto/common/env.ts';
import { SOCKET_PATH_MAX_BYTES } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { HealthService } from '../../proto/gen/grpc/health/v1/health.pb.ts';
import { ServerReflectionService } from '../../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import { type OnError, reported } from '../../proto/rpc/local.ts';
import { peerOf } from '../../proto/rpc/peer.ts';
import {
  ANSWER_MAX_BYTES,
  MESSAGE_MAX_BYTES,
  type Mounting,
  metadataIn,
  mount,
} from '../../proto/rpc/remote.ts';
import { toServiceError } from '../../proto/rpc/service-errors.ts';
import { type AllHandlers, mountAll } from '../../proto/rpc/services.ts';
import { listenTls } from '../../proto/tls/listener.ts';
import type { CoreNetwork } from '../config.ts';
import type { Authenticate } from './authentication.ts';
import { healthHandlers } from './grpc-health.ts';
import { reflectionHandlers } from './grpc-reflection.ts';

/** Deadline of long polls and uploads in flight at close. Ours: a whole drain may take 30 s. */
const DRAIN_MS = 5_000;

/** A machine that is gone answers no ping: its connection ends after both. Ours. */
const KEEP_ALIVE = { 'grpc.keepalive_time_ms': 20_000, 'grpc.keepalive_timeout_ms': 10_000 };
const LIMITS = {
  ...KEEP_ALIVE,
  'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
  'grpc.max_send_message_length': ANSWER_MAX_BYTES,
};

type Listening = {
  dataDir: string;
  network: CoreNetwork | undefined;
  authenticate: Authenticate;
  log: Log;
};

type CoreServer = {
  /** Of the socket file, in grpc-js's syntax. */
  address: string;
  close(): Promise<void>;
};

/**
 * Listens on the socket file; replaces the file of a dead process (the store's lock proves that it
 * is dead).
 */
export async function listen(
  { dataDir, network, authenticate, log }: Listening,
  handlers: AllHandlers,
  onError: OnError,
): Promise<CoreServer> {
  const socketPath = join(dataDir, 'core.sock');
  const health = healthHandlers();
  const open = (interceptors: ServerInterceptor[], peerOf?: Mounting['peerOf']): Server => {
    const server = new Server({ ...LIMITS, interceptors });
    mountAll(server, handlers, { onError, peerOf });
    mount(server, HealthService, health.handlers, { onError });
    mount(server, ServerReflectionService, reflectionHandlers(), { onError });
    return server;
  };
  const server = open([]);

  if (Buffer.byteLength(socketPath) > SOCKET_PATH_MAX_BYTES) {
    throw new ConfigError(`too long for a socket, use a shorter data directory: ${socketPath}`);
  }
  rmSync(socketPath, { force: true });
  const address = `unix:${socketPath}`;
  // Safe before the chmod: the directory is 0700.
  const bind = promisify(server.bindAsync.bind(server));
  await bind(address, ServerCredentials.createInsecure());
  chmodSync(socketPath, 0o600);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => server.forceShutdown());
  const ofNetwork = network && open([authenticatedFirst(authenticate, onError)], peersOf(network));
  const remote = ofNetwork && (await listenNetwork(ofNetwork, network, log));
  if (remote) log.info({ address: remote.address, tls: network?.tls !== undefined }, 'listening');
  opened.move();

  return {
    address,
    async close() {
      health.drain();
      await Promise.all([server, ofNetwork].map((one) => one && shutDown(one)));
      await remote?.listener?.[Symbol.asyncDispose]();
      rmSync(socketPath, { force: true });
    },
  };
}

async function shutDown(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    const force = setTimeout(() => server.forceShutdown(), DRAIN_MS);
    server.tryShutdown(() => {
      clearTimeout(force);
      resolve();
    });
  });
}

function peersOf({ clientCa }: CoreNetwork): Mounting['peerOf'] {
  return (call) => peerOf(call, clientCa !== undefined);
}

/**
 * Over a network, a request is read when its caller is authenticated: without a key nobody makes
 * core hold messages in memory. The socket file is reached by its owner only.
 */
function authenticatedFirst(authenticate: Authenticate, onError: OnError): ServerInterceptor {
  return ({ path }, call) => {
    return new ServerInterceptingCall(call, {
      start(next) {
        next({
          onReceiveMetadata(metadata, proceed) {
            authenticate(metadataIn(metadata)).then(
              () => proceed(metadata),
              (error) => call.sendStatus(toServiceError(reported(error, path, onError))),
            );
          },
        });
      },
    });
  };
}

/**
 * TLS is our own listener's and not grpc-js's, which can neither reload certificates nor report
 * why a client was refused.
 */
async function listenNetwork(server: Server, { listen: where, ...files }: CoreNetwork, log: Log) {
  const { tls, clientCa } = files;
  const host = where.host.includes(':') ? `[${where.host}]` : where.host;
  const failed = (cause: Error) =>
    new ConfigError(`TABERN_CORE_LISTEN: cannot listen on ${host}:${where.port}: ${cause.message}`);
  if (tls === undefined) {
    const bind = promisify(server.bindAsync.bind(server));
    const bound = bind(`${host}:${where.port}`, ServerCredentials.createInsecure());
    const port = await bound.catch((cause: Error) => Promise.reject(failed(cause)));
    return { address: `${host}:${port}`, listener: undefined };
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const options = { where, files: tls, clientCa, protocol: 'h2', log } as const;
  const listening = listenTls(options, (socket) => injector.injectConnection(socket));
  const listener = await listening.catch((cause: Error) =>
    Promise.reject(cause instanceof ConfigError ? cause : failed(cause)),
  );
  return { address: `${host}:${listener.port}`, listener };
}
