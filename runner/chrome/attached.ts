/** A session of our own on one target, through Chrome's pipe and beside any client's. */
import type { Pipe } from './pipe.ts';

/** Ours: a page in an endless loop answers nothing. */
const CALL_TIMEOUT_MS = 2_000;
/**
 * What Chrome 156 says of some Page commands, having done nothing, while a page goes from one
 * process to another: 17 to 50 ms of a navigation to another site, and more on a busy machine.
 */
const BETWEEN_PROCESSES = 'Not attached to an active page';
/** Ours: longer by as much each time. */
const AGAIN_MS = 20;
const AGAIN_MAX_MS = 1_000;

type Params = Record<string, unknown>;
type Message = {
  id?: number;
  method?: string;
  params?: Params;
  result?: Params;
  error?: { message: string };
};

export type CallOptions = {
  /** 2 s when not said. */
  timeoutMs?: number;
  /** Aborted, it is not asked again. */
  signal?: AbortSignal;
};

export type TargetSession = {
  /**
   * Rejects with Chrome's message, when the session has ended, or when its time is over. Is asked
   * again while the page changes its process: by then a later one may have been done.
   */
  call(method: string, params?: object, options?: CallOptions): Promise<Params>;
  /** Every event of that name, until the function that it gives is called. */
  on(method: string, listener: (params: Params) => void): () => void;
  /** The next event of that name; rejects after 2 s when not said. */
  once(method: string, options?: Pick<CallOptions, 'timeoutMs'>): Promise<Params>;
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
  const waiters = new Map<number, Waiter>();
  const listeners = new Map<string, Set<(params: Params) => void>>();
  let nextId = 1;
  let isOpen = true;
  pipe.claim(sessionId, (raw) => {
    const { id, method = '', params, result, error } = JSON.parse(raw.toString()) as Message;
    if (id === undefined) {
      for (const listener of listeners.get(method) ?? []) listener(params ?? {});
    } else if (error) waiters.get(id)?.refuse(error.message);
    else waiters.get(id)?.resolve(result ?? {});
  });
  const on = (method: string, listener: (params: Params) => void): (() => void) => {
    const of = listeners.get(method) ?? new Set();
    listeners.set(method, of.add(listener));
    return () => void of.delete(listener);
  };
  return {
    on,
    async call(method, params = {}, { timeoutMs = CALL_TIMEOUT_MS, signal } = {}) {
      if (!isOpen) throw new Error('the target is gone');
      const id = nextId++;
      const text = JSON.stringify({ id, method, params, sessionId });
      const ask = (): void => {
        if (waiters.has(id)) pipe.write(text);
      };
      const waiter = openWaiter(ask, signal);
      waiters.set(id, waiter);
      ask();
      try {
        return await inTime(waiter, `the answer to ${method}`, timeoutMs);
      } finally {
        waiters.delete(id);
      }
    },
    async once(method, { timeoutMs = CALL_TIMEOUT_MS } = {}) {
      const waiter = Promise.withResolvers<Params>();
      const off = on(method, waiter.resolve);
      try {
        return await inTime(waiter, method, timeoutMs);
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

type Waiter = PromiseWithResolvers<Params> & {
  refuse(message: string): void;
  /** Why there was none yet. */
  cause?: string;
};

/** For the answer to one command, which `ask` asks for once more. */
function openWaiter(ask: () => void, signal?: AbortSignal): Waiter {
  let againMs = AGAIN_MS;
  const waiter: Waiter = {
    ...Promise.withResolvers<Params>(),
    refuse(message) {
      const error = new Error(message);
      if (message !== BETWEEN_PROCESSES) return waiter.reject(error);
      const again = (): void => (signal?.aborted ? waiter.reject(error) : ask());
      waiter.cause = message;
      setTimeout(again, againMs).unref();
      againMs = Math.min(againMs + AGAIN_MS, AGAIN_MAX_MS);
    },
  };
  return waiter;
}

async function inTime<T>(
  waiter: PromiseWithResolvers<T> & { cause?: string },
  what: string,
  timeoutMs: number,
): Promise<T> {
  const late = () => {
    const because = waiter.cause === undefined ? '' : `: ${waiter.cause}`;
    waiter.reject(new Error(`${what} did not come in ${timeoutMs} ms${because}`));
  };
  const timer = setTimeout(late, timeoutMs);
  try {
    return await waiter.promise;
  } finally {
    clearTimeout(timer);
  }
}
