/** What an AbortSignal ends. */

/** At once when it has aborted already. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  signal.addEventListener('abort', act, { once: true });
  if (signal.aborted) act();
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', act) };
}

/** The promise, or the signal's reason when that is first. */
export async function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  using _listening = onAbort(signal, () => reject(signal.reason));
  return await Promise.race([promise, ended]);
}
