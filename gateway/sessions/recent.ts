/** Answers that are shared by all who request them within a moment. */

/** The answer for the key: a recent one, one that is on its way, or that of `read`. */
export type Recent<T> = {
  (key: string, read: () => Promise<T>): Promise<T>;
  forget(key: string): void;
};

/** Failures are shared while they are on their way, and not kept. `max`: the oldest make room. */
export function recent<T>({
  keptMs,
  max,
  now = () => performance.now(),
}: {
  keptMs: number;
  max: number;
  now?: () => number;
}): Recent<T> {
  const known = new Map<string, { until: number; answer: Promise<T> }>();
  const get = (key: string, read: () => Promise<T>): Promise<T> => {
    const found = known.get(key);
    if (found !== undefined && now() < found.until) return found.answer;
    const entry = { until: now() + keptMs, answer: read() };
    known.delete(key); // a new entry is the newest
    known.set(key, entry);
    for (const oldest of known.keys()) {
      if (known.size <= max) break;
      known.delete(oldest);
    }
    entry.answer.catch(() => {
      if (known.get(key) === entry) known.delete(key);
    });
    return entry.answer;
  };
  return Object.assign(get, { forget: (key: string) => void known.delete(key) });
}
