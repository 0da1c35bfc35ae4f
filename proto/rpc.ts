/**
 * One typed client for every service, local (in-process) or remote (gRPC), and the mounting of a service on a gRPC server.
 * Handlers throw Faults; whatever else they throw reaches the caller as INTERNAL, the cause stays in `onError`.
 * A client stream is an AsyncIterable going in, a server stream an AsyncIterable coming out; both honour back-pressure.
 */
import {
  type ChannelCredentials,
  Client,
  type ClientReadableStream,
  Metadata,
  type MethodDefinition,
  type Server,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { asFault, Fault, fromServiceError, toServiceError } from './errors.ts';

/** In bytes. A result of 6 MiB with its envelope must pass (spec/reference.md 2.4); grpc-js stops at 4 MiB by default. */
export const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;
/** Ours: a call that sets no deadline ends after this. */
export const DEADLINE_DEFAULT_MS = 30_000;

/** What one RPC carries beside its request. */
export type Call = {
  /** Aborts when the caller left or the deadline passed. */
  signal: AbortSignal;
  /** Milliseconds since 1970. */
  deadline: number;
  /** Lower-case keys: x-svc-api-key, authorization, x-request-id, traceparent. */
  metadata: Readonly<Record<string, string>>;
};

export type CallOptions = {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
};

// biome-ignore lint/suspicious/noExplicitAny: grpc-js's own map of methods is typed so; each method is typed again below.
type AnyMethod = MethodDefinition<any, any>;
/** What ts-proto makes of a service. */
export type Definition = Readonly<Record<string, AnyMethod>>;

type Streams = { requestStream: boolean; responseStream: boolean };
type RequestOf<M> = M extends MethodDefinition<infer Q, infer _> ? Q : never;
type ResponseOf<M> = M extends MethodDefinition<infer _, infer P> ? P : never;
type In<M extends Streams> = M['requestStream'] extends true
  ? AsyncIterable<RequestOf<M>>
  : RequestOf<M>;
type Out<M extends Streams> = M['responseStream'] extends true
  ? AsyncIterable<ResponseOf<M>>
  : Promise<ResponseOf<M>>;

/** A service: each RPC by its name in lower camel case. */
export type Handlers<D extends Definition> = {
  [K in keyof D]: (request: In<D[K]>, call: Call) => Out<D[K]>;
};

/** The same service seen from outside. */
export type RpcClient<D extends Definition> = {
  [K in keyof D]: (request: In<D[K]>, options?: CallOptions) => Out<D[K]>;
};

type AnyHandler = (request: unknown, call: Call) => Promise<unknown> | AsyncIterable<unknown>;

/** Told of each error that is our own fault (INTERNAL), once, where it stops. */
export type OnError = (error: Fault, method: string) => void;

/** Calls the handlers in this process. `verify` sends every message through its bytes, as tests of parity do. */
export function local<D extends Definition>(
  definition: D,
  handlers: Handlers<D>,
  options: { onError: OnError; verify?: boolean },
): RpcClient<D> {
  const methods = Object.entries(definition).map(([name, method]) => {
    const handler = handlers[name] as AnyHandler;
    const call = async (request: unknown, callOptions: CallOptions = {}) => {
      const scope = openScope(callOptions);
      const input =
        options.verify && !method.requestStream ? copy(request, method, 'request') : request;
      try {
        const answer = await raced(handler(input, scope.call) as Promise<unknown>, scope.call);
        return options.verify ? copy(answer, method, 'response') : answer;
      } catch (error) {
        throw reported(error, method.path, options.onError);
      } finally {
        scope.close();
      }
    };
    const stream = async function* (request: unknown, callOptions: CallOptions = {}) {
      const scope = openScope(callOptions);
      try {
        for await (const part of handler(request, scope.call) as AsyncIterable<unknown>) {
          throwIfOver(scope.call);
          yield options.verify ? copy(part, method, 'response') : part;
        }
      } catch (error) {
        throw reported(error, method.path, options.onError);
      } finally {
        scope.close();
      }
    };
    return [name, method.responseStream ? stream : call] as const;
  });
  return Object.fromEntries(methods) as unknown as RpcClient<D>;
}

/** Calls a service over gRPC. Close with `close()`; address is grpc-js's, such as `unix:/run/tabern/core.sock`. */
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

  constructor(address: string, credentials: ChannelCredentials) {
    this.client = new Client(address, credentials, {
      'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
      'grpc.max_send_message_length': MESSAGE_MAX_BYTES,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 2_000,
    });
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

/** Puts a service on a gRPC server. */
export function mount<D extends Definition>(
  server: Server,
  definition: D,
  handlers: Handlers<D>,
  onError: OnError,
): void {
  const implementation: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition)) {
    implementation[name] = serverMethod(method, handlers[name] as AnyHandler, onError);
  }
  server.addService(definition, implementation as UntypedServiceImplementation);
}

// --- in process ---

function openScope(options: CallOptions): { call: Call; close(): void } {
  const timeoutMs = options.timeoutMs ?? DEADLINE_DEFAULT_MS;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(deadlineFault()), timeoutMs);
  const leave = () => over.abort(cancelledFault());
  options.signal?.addEventListener('abort', leave, { once: true });
  if (options.signal?.aborted) leave();
  return {
    call: {
      signal: over.signal,
      deadline: Date.now() + timeoutMs,
      metadata: options.metadata ?? {},
    },
    close() {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', leave);
    },
  };
}

/** The answer, or the Fault of the call's end, whichever is first. */
async function raced(answer: Promise<unknown>, call: Call): Promise<unknown> {
  throwIfOver(call);
  let end: (() => void) | undefined;
  const ended = new Promise<never>((_, reject) => {
    end = () => reject(call.signal.reason);
    call.signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await Promise.race([answer, ended]);
  } finally {
    if (end) call.signal.removeEventListener('abort', end);
  }
}

function throwIfOver(call: Call): void {
  if (call.signal.aborted) throw call.signal.reason;
}

function copy(message: unknown, method: AnyMethod, side: 'request' | 'response'): unknown {
  return side === 'request'
    ? method.requestDeserialize(method.requestSerialize(message))
    : method.responseDeserialize(method.responseSerialize(message));
}

function reported(error: unknown, path: string, onError: OnError): Fault {
  const fault = asFault(error);
  if (fault.reason === 'INTERNAL') onError(fault, path);
  return fault;
}

function deadlineFault(): Fault {
  return new Fault('DEADLINE', 'The request took too long.');
}

function cancelledFault(): Fault {
  return new Fault('CANCELLED', 'The caller left.');
}

// --- over gRPC, calling ---

function remoteCall(
  { client }: Channel,
  method: AnyMethod,
  request: unknown,
  options: CallOptions,
) {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
  const callOptions = { deadline: Date.now() + (options.timeoutMs ?? DEADLINE_DEFAULT_MS) };
  const { path, requestSerialize: pack, responseDeserialize: unpack } = method;

  if (method.responseStream) {
    const stream = client.makeServerStreamRequest(
      path,
      pack,
      unpack,
      request,
      metadata,
      callOptions,
    );
    return readRemote(stream, options.signal);
  }
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null, answer?: unknown) => {
      options.signal?.removeEventListener('abort', cancel);
      if (error) reject(fromServiceError(error));
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

async function* readRemote(stream: ClientReadableStream<unknown>, signal: AbortSignal | undefined) {
  const cancel = () => stream.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    for await (const part of stream) yield part;
  } catch (error) {
    throw fromServiceError(error as ServiceError);
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

/** Writes as fast as the other side reads; stops when the stream is gone, whose error its owner tells. */
async function writeAll(parts: AsyncIterable<unknown>, out: Writes): Promise<void> {
  for await (const part of parts) {
    if (!out.write(part) && !(await drained(out))) return;
  }
  out.end();
}

/** True when the stream takes more, false when it is gone. */
function drained(out: Writes): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (open: boolean) => {
      out.off('drain', more);
      out.off('close', gone);
      out.off('error', gone);
      resolve(open);
    };
    const more = () => settle(true);
    const gone = () => settle(false);
    out.on('drain', more);
    out.on('close', gone);
    out.on('error', gone);
  });
}

// --- over gRPC, serving ---

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

async function* untilOver(parts: AsyncIterable<unknown>, call: Call) {
  for await (const part of parts) {
    throwIfOver(call);
    yield part;
  }
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

/** The handler of an RPC that the contract names and no code serves yet: 501, never an invented answer. */
export async function notBuilt(): Promise<never> {
  throw new Fault('NOT_IMPLEMENTED', 'This operation is not available yet.');
}
