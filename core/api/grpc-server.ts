/**
 * The gRPC server: unix:<data>/core.sock, mode 0600, for the runner and callers on this machine.
 * Includes the standard health and reflection services, so that grpcurl and probes need no .proto
 * files.
 */
import { chmodSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { ConfigError } from '../../proto/common/env.ts';
import { SOCKET_PATH_MAX_BYTES } from '../../proto/common/limits.ts';
import { HealthService } from '../../proto/gen/grpc/health/v1/health.pb.ts';
import { ServerReflectionService } from '../../proto/gen/grpc/reflection/v1/reflection.pb.ts';
import type { OnError } from '../../proto/rpc/local.ts';
import { ANSWER_MAX_BYTES, MESSAGE_MAX_BYTES, mount } from '../../proto/rpc/remote.ts';
import { type AllHandlers, mountAll } from '../../proto/rpc/services.ts';
import { healthHandlers } from './grpc-health.ts';
import { reflectionHandlers } from './grpc-reflection.ts';

/** Deadline of long polls and uploads in flight at close. Ours: a whole drain may take 30 s. */
const DRAIN_MS = 5_000;

type CoreServer = {
  /** In grpc-js's syntax. */
  address: string;
  close(): Promise<void>;
};

/**
 * Listens on the socket file; replaces the file of a dead process (the store's lock proves that it
 * is dead).
 */
export async function listen(
  socketPath: string,
  handlers: AllHandlers,
  onError: OnError,
): Promise<CoreServer> {
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
    'grpc.max_send_message_length': ANSWER_MAX_BYTES,
  });
  mountAll(server, handlers, onError);
  const health = healthHandlers();
  mount(server, HealthService, health.handlers, { onError });
  mount(server, ServerReflectionService, reflectionHandlers(), { onError });

  if (Buffer.byteLength(socketPath) > SOCKET_PATH_MAX_BYTES) {
    throw new ConfigError(`too long for a socket, use a shorter data directory: ${socketPath}`);
  }
  rmSync(socketPath, { force: true });
  const address = `unix:${socketPath}`;
  // Safe before the chmod: the directory is 0700.
  const bind = promisify(server.bindAsync.bind(server));
  await bind(address, ServerCredentials.createInsecure());
  chmodSync(socketPath, 0o600);

  return {
    address,
    async close() {
      health.drain();
      await new Promise<void>((resolve) => {
        const force = setTimeout(() => server.forceShutdown(), DRAIN_MS);
        server.tryShutdown(() => {
          clearTimeout(force);
          resolve();
        });
      });
      rmSync(socketPath, { force: true });
    },
  };
}
