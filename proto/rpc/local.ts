/**
 * The types of services and clients, and the client that calls handlers in this process; remote.ts
 * is the same over gRPC. Handlers throw Faults; other errors reach the caller as INTERNAL, and
 * their cause is passed to `onError`. A client stream is an AsyncIterable parameter, a server
 * stream an AsyncIterable result.
 */
import type { MethodDefinition } from '@grpc/grpc-js';
import { asFault, Fault } from './errors.ts';

/** Ours: the deadline of calls that set none. */
export const DEADLINE_DEFAULT_MS = 30_000;

/** Data of one RPC besides its request. */
export type Call = {
  /** Aborts when the caller disconnects or the deadline passes. */
  signal: AbortSignal;
  /** By performance.now(), in milliseconds. */
  deadline: number;
  /** Lower-case keys: x-svc-api-key, authorization, x-request-id, traceparent. */
  metadata: Readonly<Record<string, string>>;
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

/**
 * Calls handlers in this process. `verify` encodes and decodes every message, for tests of parity.
 */
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

/**
 * The lifetime of a call: its signal aborts at the deadline or when the caller disconnects. Call
 * `close` after the answer.
 */
export function openScope(options: CallOptions): { call: Call; close(): void } {
  const timeoutMs = options.timeoutMs ?? DEADLINE_DEFAULT_MS;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(deadlineFault()), timeoutMs);
  const leave = () => over.abort(cancelledFault());
  options.signal?.addEventListener('abort', leave, { once: true });
  if (options.signal?.aborted) leave();
  return {
    call: {
      signal: over.signal,
      deadline: performance.now() + timeoutMs,
      metadata: options.metadata ?? {},
    },
    close() {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', leave);
    },
  };
}

/** The answer, or the Fault that ended the call, whichever is first. */
export async function raced(answer: Promise<unknown>, call: Call): Promise<unknown> {
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

/** Throws the Fault of an ended call. */
export function throwIfOver(call: Call): void {
  if (call.signal.aborted) throw call.signal.reason;
}

function copy(message: unknown, method: AnyMethod, side: 'request' | 'response'): unknown {
  return side === 'request'
    ? method.requestDeserialize(method.requestSerialize(message))
    : method.responseDeserialize(method.responseSerialize(message));
}

/** The error as a Fault; internal errors are passed to `onError` once. */
export function reported(error: unknown, path: string, onError: OnError): Fault {
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

/**
 * The handler of an RPC in the contract that is not implemented yet: 501, never an invented answer.
 */
export async function notBuilt(): Promise<never> {
  throw new Fault('NOT_IMPLEMENTED', 'This operation is not available yet.');
}
