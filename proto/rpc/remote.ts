/**
 * The typed client over gRPC, and the registration of services on a gRPC server. Streams apply
 * back-pressure in both directions.
 */
import {
  ChannelCredentials,
  Client,
  type ClientReadableStream,
  Metadata,
  type Server,
  type ServiceError,
  connectivityState as state,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { CoreTls } from '../tls/core-tls.ts';
import { brokenCall } from './connection-errors.ts';
import { connecting } from './credentials.ts';
import { asFault, Fault } from './errors.ts';
import {
  type AnyHandler,
  type AnyMethod,
  type Call,
  type CallOptions,
  DEADLINE_DEFAULT_MS,
  type Definition,
  type Handlers,
  type OnError,
  openScope,
  type RpcClient,
  raced,
  reported,
  untilOver,
} from './local.ts';
import type { Peer, PeerCall } from './peer.ts';
import { toServiceError } from './service-errors.ts';

const MIB = 1024 * 1024;
/** In bytes, of a request. A result of 6 MiB, as text, must fit; grpc-js's default is 4 MiB. */
export const MESSAGE_MAX_BYTES = 16 * MIB;
/**
 * In bytes, of a response. A result of 6 MiB (proto/spec/functions.md 5) is read as a Value, which
 * takes up to 5.5 times the bytes of its JSON.
 */
export const ANSWER_MAX_BYTES = 48 * MIB;

/**
 * Calls a service over gRPC. Close with `close()`; address is grpc-js's, such as
 * `unix:/run/tabern/core.sock`.
 */
export function remote<D extends Definition>(definition: D, channel: Channel): RpcClient<D> {
  const methods = Object.entries(definition).map(([name, method]) => [
    name,
    (request: unknown, options: CallOptions = {}) => remoteCall(channel, method, request, options),
  ]);
  return Object.fromEntries(methods) as unknown as RpcClient<D>;
}

/**
 * In milliseconds: a connection that is not ready for so long is given up, and another one is made,
 * which a load balancer may lead to another core. grpc-js waits for a silent peer without a limit,
 * and calls wait with it until their deadlines. Ours.
 */
const CONNECT_MAX_MS = 5_000;

/** A connection that several remote clients share. */
export class Channel implements Disposable {
  readonly #open: () => Client;
  #client: Client;
  #giveUp: NodeJS.Timeout | undefined;

  /** `how`: the files for TLS, or credentials of grpc-js. */
  constructor(address: string, how?: CoreTls | ChannelCredentials) {
    const given = how instanceof ChannelCredentials ? { credentials: how, options: {} } : undefined;
    const { credentials, options } = given ?? connecting(address, how as CoreTls | undefined);
    this.#open = () =>
      new Client(address, credentials, {
        ...options,
        'grpc.max_receive_message_length': ANSWER_MAX_BYTES,
        'grpc.max_send_message_length': MESSAGE_MAX_BYTES,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 2_000,
        // another client must not share the connection that was given up
        'grpc.use_local_subchannel_pool': 1,
      });
    this.#client = this.#open();
    this.#watch(this.#client);
  }

  get client(): Client {
    return this.#client;
  }

  /** At each change of the connection's state, and once now. */
  #watch(client: Client): void {
    const channel = client.getChannel();
    const current = channel.getConnectivityState(false);
    if (client !== this.#client || current === state.SHUTDOWN) return;
    const isTrying = current === state.CONNECTING || current === state.TRANSIENT_FAILURE;
    if (!isTrying) this.#settle();
    else this.#giveUp ??= setTimeout(() => this.#replace(), CONNECT_MAX_MS).unref();
    channel.watchConnectivityState(current, Number.POSITIVE_INFINITY, () => this.#watch(client));
  }

  /** Calls that wait for the connection fail; the next one makes another. */
  #replace(): void {
    this.#settle();
    const before = this.#client;
    this.#client = this.#open();
    before.close();
    this.#watch(this.#client);
  }

  #settle(): void {
    clearTimeout(this.#giveUp);
    this.#giveUp = undefined;
  }

  [Symbol.dispose](): void {
    this.#settle();
    this.#client.close();
  }
}

/** A request that was not decoded. */
const TOO_LARGE = Symbol('too large');

/** `peerOf`: of callers on a network; absent for those of this machine. */
export type Mounting = { onError: OnError; peerOf?: ((call: PeerCall) => Peer) | undefined };

/**
 * Registers a service on a gRPC server. Larger requests than `maxBytes` are refused before they are
 * decoded: a message of 13 MiB with many members takes seconds to decode.
 */
export function mount<D extends Definition>(
  server: Server,
  definition: D,
  handlers: Handlers<D>,
  { maxBytes = MESSAGE_MAX_BYTES, ...how }: Mounting & { maxBytes?: number },
): void {
  const methods = Object.entries(definition).map(([name, method]) => {
    const { requestDeserialize: decode } = method;
    const bounded = (bytes: Buffer) => (bytes.length > maxBytes ? TOO_LARGE : decode(bytes));
    return [name, { ...method, requestDeserialize: bounded }];
  });
  const implementation = Object.entries(definition).map(([name, method]) => {
    const handler = handlers[name] as AnyHandler;
    const handle: AnyHandler = (request, call) => {
      if (request !== TOO_LARGE) return handler(request, call);
      throw new Fault('BODY_TOO_LARGE', `The message is larger than ${maxBytes} bytes.`);
    };
    return [name, serverMethod(method, handle, how)];
  });
  server.addService(
    Object.fromEntries(methods) as Definition,
    Object.fromEntries(implementation) as UntypedServiceImplementation,
  );
}

function remoteCall(
  { client }: Channel,
  method: AnyMethod,
  request: unknown,
  options: CallOptions,
) {
  const callOptions = { deadline: Date.now() + (options.timeoutMs ?? DEADLINE_DEFAULT_MS) };
  const { path, requestSerialize: pack, responseDeserialize: unpack } = method;

  if (method.responseStream) {
    const stream = client.makeServerStreamRequest(
      path,
      pack,
      unpack,
      request,
      metadataOf(options),
      callOptions,
    );
    return readRemote(stream, path, options.signal);
  }
  // all errors here reject, as in a local call
  return new Promise((resolve, reject) => {
    const metadata = metadataOf(options);
    const done = (error: ServiceError | null, answer?: unknown) => {
      options.signal?.removeEventListener('abort', cancel);
      if (error) reject(brokenCall(error, path, options.signal?.aborted === true));
      else resolve(answer);
    };
    const call = method.requestStream
      ? client.makeClientStreamRequest(path, pack, unpack, metadata, callOptions, done)
      : client.makeUnaryRequest(path, pack, unpack, request, metadata, callOptions, done);
    const cancel = () => call.cancel();
    options.signal?.addEventListener('abort', cancel, { once: true });
    if (options.signal?.aborted) cancel();
    if ('write' in call) {
      void writeAll(request as AsyncIterable<unknown>, call as unknown as Writes).catch(
        (error: unknown) => {
          call.cancel();
          reject(asFault(error));
        },
      );
    }
  });
}

/** Throws for a value that is not printable ASCII. */
function metadataOf({ metadata = {} }: CallOptions): Metadata {
  const sent = new Metadata();
  for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
  return sent;
}

async function* readRemote(
  stream: ClientReadableStream<unknown>,
  path: string,
  signal: AbortSignal | undefined,
) {
  const cancel = () => stream.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    for await (const part of stream) yield part;
  } catch (error) {
    throw brokenCall(error as ServiceError, path, signal?.aborted === true);
  } finally {
    signal?.removeEventListener('abort', cancel);
    stream.cancel();
  }
}

type Writes = {
  write(part: unknown): boolean;
  end(): void;
  on(event: string, then: () => void): unknown;
  off(event: string, then: () => void): unknown;
};

/**
 * Writes as fast as the peer reads; stops when the stream is closed. The stream's owner reports its
 * error.
 */
async function writeAll(parts: AsyncIterable<unknown>, out: Writes): Promise<void> {
  for await (const part of parts) {
    if (!out.write(part) && !(await drained(out))) return;
  }
  out.end();
}

/** True when the stream accepts more, false when it is closed. */
function drained(out: Writes): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (open: boolean) => {
      out.off('drain', more);
      out.off('close', closed);
      out.off('error', closed);
      resolve(open);
    };
    const more = () => settle(true);
    const closed = () => settle(false);
    out.on('drain', more);
    out.on('close', closed);
    out.on('error', closed);
  });
}

type ServerCall = {
  request: unknown;
  metadata: Metadata;
  cancelled: boolean;
  getDeadline(): Date | number;
  emit(event: string, error: unknown): boolean;
} & PeerCall &
  Writes &
  AsyncIterable<unknown>;

type Answer = (error: Partial<ServiceError> | null, answer?: unknown) => void;

function serverMethod(method: AnyMethod, handler: AnyHandler, { onError, peerOf }: Mounting) {
  if (method.responseStream) {
    return async (raw: ServerCall) => {
      const scope = serverScope(raw, peerOf?.(raw));
      try {
        const request = method.requestStream ? raw : raw.request;
        const parts = handler(request, scope.call) as AsyncIterable<unknown>;
        await writeAll(untilOver(parts, scope.call), raw);
      } catch (error) {
        raw.emit('error', toServiceError(reported(error, method.path, onError)));
      } finally {
        scope.close();
      }
    };
  }
  return async (raw: ServerCall, answer: Answer) => {
    const scope = serverScope(raw, peerOf?.(raw));
    try {
      const request = method.requestStream ? raw : raw.request;
      answer(null, await raced(handler(request, scope.call) as Promise<unknown>, scope.call));
    } catch (error) {
      answer(toServiceError(reported(error, method.path, onError)));
    } finally {
      scope.close();
    }
  };
}

function serverScope(raw: ServerCall, peer: Peer | undefined): { call: Call; close(): void } {
  const deadline = Number(raw.getDeadline());
  const left = new AbortController();
  const leave = () => left.abort();
  raw.on('cancelled', leave);
  const timeoutMs = Number.isFinite(deadline)
    ? Math.max(0, deadline - Date.now())
    : DEADLINE_DEFAULT_MS;
  const metadata = metadataIn(raw.metadata);
  const scope = openScope({ signal: left.signal, timeoutMs, metadata, peer });
  return {
    ...scope,
    close() {
      scope.close();
      raw.off('cancelled', leave); // it follows each answer, too
    },
  };
}

/** Without binary values. */
export function metadataIn(metadata: Metadata): Record<string, string> {
  const entries = Object.entries(metadata.getMap()).filter(
    ([, value]) => typeof value === 'string',
  );
  return Object.fromEntries(entries) as Record<string, string>;
}
