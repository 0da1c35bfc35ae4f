/** A CDP session of our own on one target, independent of clients' sessions. */
import { pageOverrides } from './page-overrides.ts';
import type { Pipe } from './pipe.ts';

/** Ours: a page in an endless loop does not respond. */
const CALL_TIMEOUT_MS = 2_000;
/**
 * Chrome 156 rejects some Page commands with this, without effect, while a page changes its
 * process: for 17 to 50 ms of a cross-site navigation, longer on a busy machine.
 */
const NOT_ATTACHED = 'Not attached to an active page';
/** Ours: grows by this much with each retry. */
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

type Params = Record<string, unknown>;
type Message = {
  id?: number;
  method?: string;
  params?: Params;
  result?: Params;
  error?: { message: string };
};

export type CallOptions = {
  /** For one response, and for the last retry; 2 s by default. */
  timeoutMs?: number;
  /** No retry starts after it aborts. */
  signal?: AbortSignal;
};

export type TargetSession = {
  /**
   * Rejects with Chrome's error, when the session has ended, or without a response in time. Retried
   * while the page changes its process; a later command may overtake it then.
   */
  call(method: string, params?: object, options?: CallOptions): Promise<Params>;
  /** Calls the listener for every event of that name; returns the function that removes it. */
  on(method: string, listener: (params: Params) => void): () => void;
  /** The next event of that name; rejects when the session has ended, or after the timeout. */
  once(method: string, options?: Pick<CallOptions, 'timeoutMs'>): Promise<Params>;
};
export type Attached = AsyncDisposable & TargetSession;

/** Attaches a new session. Its disposal also ends its settings in the page. */
export async function attach(pipe: Pipe, targetId: string): Promise<Attached> {
  const { sessionId: id } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
  const sessionId = String(id);
  const { end, ...session } = openTargetSession(pipe, sessionId);
  const leave = pageOverrides(pipe).join(targetId, session);
  return {
    ...session,
    async [Symbol.asyncDispose]() {
      end();
      // Rejects when the target or Chrome is gone, and the session with it.
      await pipe.call('Target.detachFromTarget', { sessionId }).catch(() => undefined);
      leave();
    },
  };
}

/** Uses an existing session. Call `end` when the session has ended: pending calls reject. */
export function openTargetSession(
  pipe: Pipe,
  sessionId: string,
): TargetSession & { end: () => void } {
  const waiters = new Map<number, Waiter>();
  const listeners = new Map<string, Set<(params: Params) => void>>();
  let isOpen = true;
  const receive = (raw: Buffer): void => {
    const { id, method = '', params, result, error } = JSON.parse(raw.toString()) as Message;
    if (id === undefined) {
      for (const listener of listeners.get(method) ?? []) listener(params ?? {});
    } else if (error) waiters.get(id)?.retryOrReject(error.message);
    else waiters.get(id)?.resolve(result ?? {});
  };
  pipe.claim(sessionId, receive);
  // for a session that ended before Chrome read a command, when its end has not been received yet
  const stopListening = pipe.onUnknownSession((id, raw) => {
    if (waiters.has(id)) receive(raw);
  });
  const on = (method: string, listener: (params: Params) => void): (() => void) => {
    const of = listeners.get(method) ?? new Set();
    listeners.set(method, of.add(listener));
    return () => void of.delete(listener);
  };
  const settled = async (id: number, waiter: Waiter): Promise<Params> => {
    waiters.set(id, waiter);
    waiter.send();
    return await waiter.promise.finally(() => waiters.delete(id));
  };
  return {
    on,
    async call(method, params = {}, options = {}) {
      if (!isOpen) throw new Error('the target is gone');
      const id = pipe.newId();
      const text = Buffer.from(JSON.stringify({ id, method, params, sessionId }));
      const send = (): void => void pipe.write(text);
      using waiter = openWaiter(`no response to ${method}`, send, options);
      return await settled(id, waiter);
    },
    async once(method, options = {}) {
      using waiter = openWaiter(`${method} did not arrive`, () => undefined, options);
      const off = on(method, waiter.resolve);
      return await settled(pipe.newId(), waiter).finally(off);
    },
    end() {
      isOpen = false;
      pipe.release(sessionId);
      stopListening();
      const gone = new Error('the target is gone');
      for (const waiter of waiters.values()) waiter.reject(gone);
    },
  };
}

type Waiter = PromiseWithResolvers<Params> &
  Disposable & {
    send(): void;
    retryOrReject(message: string): void;
  };

/** Waits for the response to one command, or for an event. `late` begins the timeout's message. */
function openWaiter(
  late: string,
  write: () => void,
  { timeoutMs = CALL_TIMEOUT_MS, signal }: CallOptions,
): Waiter {
  const { promise, resolve, reject } = Promise.withResolvers<Params>();
  const retryUntil = performance.now() + timeoutMs;
  let delayMs = RETRY_MIN_MS;
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = setTimeout(() => reject(new Error(`${late} within ${timeoutMs} ms`)), timeoutMs);
    write();
  };
  return {
    promise,
    resolve,
    reject,
    send,
    retryOrReject(message) {
      clearTimeout(timer);
      const error = new Error(message);
      const isOver = performance.now() + delayMs > retryUntil;
      if (message !== NOT_ATTACHED || isOver) return reject(error);
      timer = setTimeout(() => (signal?.aborted ? reject(error) : send()), delayMs);
      delayMs = Math.min(delayMs + RETRY_MIN_MS, RETRY_MAX_MS);
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
