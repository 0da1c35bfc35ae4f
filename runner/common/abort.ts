/** AbortSignals with scopes and promises. */

/** Calls `act` when the signal aborts, or at once if it has aborted already. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  signal.addEventListener('abort', act, { once: true });
  if (signal.aborted) act();
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', act) };
}

/** A signal that aborts `ms` milliseconds after another one. Dispose of it to stop the timer. */
export function abortAfter(first: AbortSignal, ms: number): Disposable & { signal: AbortSignal } {
  const later = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const listening = onAbort(first, () => {
    timer = setTimeout(() => later.abort(first.reason), ms);
  });
  return {
    signal: later.signal,
    [Symbol.dispose]() {
      listening[Symbol.dispose]();
      clearTimeout(timer);
    },
  };
}

/** Settles as the promise does, or rejects with the signal's reason if the signal aborts first. */
export async function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  using _listening = onAbort(signal, () => reject(signal.reason));
  return await Promise.race([promise, ended]);
}
