/** A session of our own on one target, through Chrome's pipe and beside any client's. */
import type { Pipe } from './pipe.ts';

/** Ours: a page in an endless loop answers nothing. */
const CALL_TIMEOUT_MS = 2_000;

type Message = {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { message: string };
};

export type Attached = AsyncDisposable & {
  /** Rejects with Chrome's message, or after 2 s. */
  call(method: string, params?: object): Promise<Record<string, unknown>>;
  /** One event of each name at a time; the later listener stands. */
  on(method: string, listener: (params: Record<string, unknown>) => void): void;
  /** The next event of that name; rejects after 2 s. */
  once(method: string): Promise<Record<string, unknown>>;
};

/** Ended, its settings in the page end too. */
export async function attach(pipe: Pipe, targetId: string): Promise<Attached> {
  const { sessionId: id } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
  const sessionId = String(id);
  const waiters = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  const listeners = new Map<string, (params: Record<string, unknown>) => void>();
  let nextId = 1;
  const inTime = async <T>(waiter: PromiseWithResolvers<T>, what: string): Promise<T> => {
    const late = () => waiter.reject(new Error(`${what} did not come in ${CALL_TIMEOUT_MS} ms`));
    const timer = setTimeout(late, CALL_TIMEOUT_MS);
    try {
      return await waiter.promise;
    } finally {
      clearTimeout(timer);
    }
  };
  pipe.claim(sessionId, (raw) => {
    const message = JSON.parse(raw.toString()) as Message;
    if (message.id === undefined) {
      listeners.get(message.method ?? '')?.(message.params ?? {});
      return;
    }
    if (message.error) waiters.get(message.id)?.reject(new Error(message.error.message));
    else waiters.get(message.id)?.resolve(message.result ?? {});
  });
  return {
    async call(method, params = {}) {
      const messageId = nextId++;
      const waiter = Promise.withResolvers<Record<string, unknown>>();
      waiters.set(messageId, waiter);
      pipe.write(JSON.stringify({ id: messageId, method, params, sessionId }));
      try {
        return await inTime(waiter, `the answer to ${method}`);
      } finally {
        waiters.delete(messageId);
      }
    },
    once(method) {
      const waiter = Promise.withResolvers<Record<string, unknown>>();
      listeners.set(method, waiter.resolve);
      return inTime(waiter, method);
    },
    on: (method, listener) => void listeners.set(method, listener),
    async [Symbol.asyncDispose]() {
      pipe.release(sessionId);
      // rejects when the target or Chrome is gone, which is as good
      await pipe.call('Target.detachFromTarget', { sessionId }).catch(() => undefined);
    },
  };
}
