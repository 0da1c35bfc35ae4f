/**
 * The typed client over gRPC, and the registration of services on a gRPC server. Streams apply
 * back-pressure in both directions.
 */
import {
  type ChannelCredentials,
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type Server,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { brokenCall } from './connection-errors.ts';
import { asFault, Fault, toServiceError } from './errors.ts';
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

/** A connection that several remote clients share. */
export class Channel implements Disposable {
  readonly client: Client;

  constructor(address: string, how: ChannelCredentials = credentialsFor(address)) {
    this.client = new Client(address, how, {
      'grpc.max_receive_message_length': ANSWER_MAX_BYTES,
      'grpc.max_send_message_length': MESSAGE_MAX_BYTES,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 2_000,
    });
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

/**
 * A socket file is protected by its mode; a call over the network carries a token and needs TLS.
 */
function credentialsFor(address: string): ChannelCredentials {
  return address.startsWith('unix:') ? credentials.createInsecure() : credentials.createSsl();
}

/** A request that was not decoded. */
const TOO_LARGE = Symbol('too large');

/**
 * Registers a service on a gRPC server. Larger requests than `maxBytes` are refused before they are
 * decoded: a message of 13 MiB with many members takes seconds to decode.
 */
export function mount<D extends Definition>(
  server: Server,
  definition: D,
  handlers: Handlers<D>,
  { onError, maxBytes = MESSAGE_MAX_BYTES }: { onError: OnError; maxBytes?: number },
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
    return [name, serverMethod(method, handle, onError)];
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
} & Writes &
  AsyncIterable<unknown>;

type Answer = (error: Partial<ServiceError> | null, answer?: unknown) => void;

function serverMethod(method: AnyMethod, handler: AnyHandler, onError: OnError) {
  if (method.responseStream) {
    return async (raw: ServerCall) => {
      const scope = serverScope(raw);
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
    const scope = serverScope(raw);
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

function serverScope(raw: ServerCall): { call: Call; close(): void } {
  const deadline = Number(raw.getDeadline());
  const left = new AbortController();
  raw.on('cancelled', () => left.abort());
  const timeoutMs = Number.isFinite(deadline)
    ? Math.max(0, deadline - Date.now())
    : DEADLINE_DEFAULT_MS;
  return openScope({ signal: left.signal, timeoutMs, metadata: plain(raw.metadata) });
}

function plain(metadata: Metadata): Record<string, string> {
  const entries = Object.entries(metadata.getMap()).filter(
    ([, value]) => typeof value === 'string',
  );
  return Object.fromEntries(entries) as Record<string, string>;
}
