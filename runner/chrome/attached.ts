/** A session of our own on one target, through Chrome's pipe and beside any client's. */
import type { Pipe } from './pipe.ts';

/** Ours: a page in an endless loop answers nothing. */
const CALL_TIMEOUT_MS = 2_000;
/**
 * What Chrome 156 says of Page commands, having done nothing, while a page goes from one process to
 * another: 20 to 50 ms of each navigation to another site.
 */
const BETWEEN_PROCESSES = 'Not attached to an active page';
const AGAIN_MS = 20;

type Params = Record<string, unknown>;
type Message = {
  id?: number;
  method?: string;
  params?: Params;
  result?: Params;
  error?: { message: string };
};

export type TargetSession = {
  /**
   * Rejects with Chrome's message, when the session has ended, or after 2 s when not said. Asks
   * again while the page changes its process: what was asked first may then be done last.
   */
  call(method: string, params?: object, timeoutMs?: number): Promise<Params>;
  /** Every event of that name, until the function that it gives is called. */
  on(method: string, listener: (params: Params) => void): () => void;
  /** The next event of that name; rejects after 2 s. */
  once(method: string): Promise<Params>;
};
export type Attached = AsyncDisposable & TargetSession;

/** Ended, its settings in the page end too. */
export async function attach(pipe: Pipe, targetId: string): Promise<Attached> {
  const { sessionId: id } = await pipe.call('Target.attachToTarget', { targetId, flatten: true });
  const sessionId = String(id);
  const { end, ...session } = openTargetSession(pipe, sessionId);
  return {
    ...session,
    async [Symbol.asyncDispose]() {
      end();
      // rejects when the target or Chrome is gone, which is as good
      await pipe.call('Target.detachFromTarget', { sessionId }).catch(() => undefined);
    },
  };
}

/** Speaks on a session that exists already. `end` when it is over: who waits is told. */
export function openTargetSession(
  pipe: Pipe,
  sessionId: string,
): TargetSession & { end: () => void } {
  const waiters = new Map<number, PromiseWithResolvers<Params> & { ask(): void }>();
  const listeners = new Map<string, Set<(params: Params) => void>>();
  let nextId = 1;
  let isOpen = true;
  pipe.claim(sessionId, (raw) => {
    const { id, method = '', params, result, error } = JSON.parse(raw.toString()) as Message;
    if (id === undefined) {
      for (const listener of listeners.get(method) ?? []) listener(params ?? {});
    } else if (error?.message === BETWEEN_PROCESSES) {
      setTimeout(() => waiters.get(id)?.ask(), AGAIN_MS).unref(); // it may be over by then
    } else if (error) waiters.get(id)?.reject(new Error(error.message));
    else waiters.get(id)?.resolve(result ?? {});
  });
  const on = (method: string, listener: (params: Params) => void): (() => void) => {
    const of = listeners.get(method) ?? new Set();
    listeners.set(method, of.add(listener));
    return () => void of.delete(listener);
  };
  return {
    on,
    async call(method, params = {}, timeoutMs = CALL_TIMEOUT_MS) {
      if (!isOpen) throw new Error('the target is gone');
      const id = nextId++;
      const text = JSON.stringify({ id, method, params, sessionId });
      const waiter = { ...Promise.withResolvers<Params>(), ask: () => pipe.write(text) };
      waiters.set(id, waiter);
      waiter.ask();
      try {
        return await inTime(waiter, `the answer to ${method}`, timeoutMs);
      } finally {
        waiters.delete(id);
      }
    },
    async once(method) {
      const waiter = Promise.withResolvers<Params>();
      const off = on(method, waiter.resolve);
      try {
        return await inTime(waiter, method, CALL_TIMEOUT_MS);
      } finally {
        off();
      }
    },
    end() {
      isOpen = false;
      pipe.release(sessionId);
      for (const waiter of waiters.values()) waiter.reject(new Error('the target is gone'));
    },
  };
}

async function inTime<T>(
  waiter: PromiseWithResolvers<T>,
  what: string,
  timeoutMs: number,
): Promise<T> {
  const late = () => waiter.reject(new Error(`${what} did not come in ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  try {
    return await waiter.promise;
  } finally {
    clearTimeout(timer);
  }
}
