/**
 * The types of services and clients, and the client that calls handlers in this process; remote.ts
 * is the same over gRPC. Handlers throw Faults; other errors reach the caller as INTERNAL, and
 * their cause is passed to `onError`. A client stream is an AsyncIterable parameter, a server
 * stream an AsyncIterable result.
 */
import type { MethodDefinition } from '@grpc/grpc-js';
import { asFault, Fault } from './errors.ts';
import type { Peer } from './peer.ts';

/** Ours: the deadline of calls that set none. */
export const DEADLINE_DEFAULT_MS = 30_000;

/** Data of one RPC besides its request. */
export type Call = {
  /** Aborts when the caller disconnects or the deadline passes. */
  signal: AbortSignal;
  /** By performance.now(), in milliseconds. */
  deadline: number;
  /** Lower-case keys: x-svc-api-key, x-console-login, x-console-project, x-console-address,
   * authorization, x-request-id, traceparent. */
  metadata: Readonly<Record<string, string>>;
  /** Absent for a caller of this machine: in this process, or at the socket file. */
  peer?: Peer | undefined;
};

export type CallOptions = {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
};

// biome-ignore lint/suspicious/noExplicitAny: as grpc-js types its map; typed again below.
export type AnyMethod = MethodDefinition<any, any>;
/** A service as ts-proto generates it. */
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

/** The handlers of a service, by RPC name in lower camel case. */
export type Handlers<D extends Definition> = {
  [K in keyof D]: (request: In<D[K]>, call: Call) => Out<D[K]>;
};

/** The client's view of a service. */
export type RpcClient<D extends Definition> = {
  [K in keyof D]: (request: In<D[K]>, options?: CallOptions) => Out<D[K]>;
};

/** A handler of any RPC; typed again at the call. */
export type AnyHandler = (
  request: unknown,
  call: Call,
) => Promise<unknown> | AsyncIterable<unknown>;

/** Receives each internal error (INTERNAL) once. */
export type OnError = (error: Fault, method: string) => void;

/** Calls handlers in this process. */
export function local<D extends Definition>(
  definition: D,
  handlers: Handlers<D>,
  { onError }: { onError: OnError },
): RpcClient<D> {
  const methods = Object.entries(definition).map(([name, { path, responseStream }]) => {
    const handler = handlers[name] as AnyHandler;
    const call = async (request: unknown, options: CallOptions = {}) => {
      const scope = openScope(options);
      try {
        return await raced(handler(request, scope.call) as Promise<unknown>, scope.call);
      } catch (error) {
        throw reported(error, path, onError);
      } finally {
        scope.close();
      }
    };
    const stream = async function* (request: unknown, options: CallOptions = {}) {
      const scope = openScope(options);
      try {
        yield* untilOver(handler(request, scope.call) as AsyncIterable<unknown>, scope.call);
      } catch (error) {
        throw reported(error, path, onError);
      } finally {
        scope.close();
      }
    };
    return [name, responseStream ? stream : call] as const;
  });
  return Object.fromEntries(methods) as unknown as RpcClient<D>;
}

/**
 * The lifetime of a call: its signal aborts at the deadline or when the caller disconnects. Call
 * `close` after the response.
 */
export function openScope(options: CallOptions & Pick<Call, 'peer'>): {
  call: Call;
  close(): void;
} {
  const timeoutMs = options.timeoutMs ?? DEADLINE_DEFAULT_MS;
  const over = new AbortController();
  const late = () => over.abort(new Fault('DEADLINE', 'The request took too long.'));
  const timer = setTimeout(late, timeoutMs);
  const leave = () => over.abort(new Fault('CANCELLED', 'The caller left.'));
  options.signal?.addEventListener('abort', leave, { once: true });
  if (options.signal?.aborted) leave();
  return {
    call: {
      signal: over.signal,
      deadline: performance.now() + timeoutMs,
      metadata: options.metadata ?? {},
      peer: options.peer,
    },
    close() {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', leave);
    },
  };
}

/** The response, or the Fault that ended the call, whichever is first. */
export async function raced<T>(answer: Promise<T>, call: Call): Promise<T> {
  throwIfOver(call);
  const { signal } = call;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => reject(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([answer, ended]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** The parts until the call ends; then throws its Fault. */
export async function* untilOver<Part>(
  parts: AsyncIterable<Part>,
  call: Call,
): AsyncGenerator<Part> {
  for await (const part of parts) {
    throwIfOver(call);
    yield part;
  }
}

/** Throws the Fault of an ended call. */
export function throwIfOver(call: Call): void {
  if (call.signal.aborted) throw call.signal.reason;
}

/** The error as a Fault; internal errors are passed to `onError` once. */
export function reported(error: unknown, path: string, onError: OnError): Fault {
  const fault = asFault(error);
  if (fault.reason === 'INTERNAL') onError(fault, path);
  return fault;
}
