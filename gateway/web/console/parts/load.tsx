/** A request of a component: its answer, its error, and when to read it again. */
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { api, sentenceOf } from '../data/api.ts';
import { onChange } from '../data/changes.ts';
import { paced } from '../data/paced.ts';

export type Loaded<T> = {
  value: T | undefined;
  error: string | undefined;
  again(): void;
};

/** Ours: what has no change of its own, such as a recording that grows. */
const AGAIN_MS = 10_000;
const NONE: readonly string[] = [];

/**
 * GET of the path, and again at changes of these kinds, of one object where `id` names it. An empty
 * path reads nothing.
 */
export function useLoad<T>(path: string, kinds = NONE, id?: string): Loaded<T> {
  const [state, setState] = useState<{ path: string; value?: T; error?: string }>({ path });
  const abort = useRef<AbortController>(undefined);
  const again = useCallback(async () => {
    if (path === '') return;
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    try {
      const value = await api<T>(path, undefined, own.signal);
      if (!own.signal.aborted) setState({ path, value });
    } catch (error) {
      if (own.signal.aborted) return;
      setState((old) => ({ ...(old.path === path ? old : {}), path, error: sentenceOf(error) }));
    }
  }, [path]);
  useEffect(() => {
    void again();
    return () => abort.current?.abort();
  }, [again]);
  const names = kinds.join();
  useEffect(() => {
    if (names === '') return;
    const reads = paced(again);
    const end = onChange(names.split(','), ({ ids }) => {
      if (id === undefined || ids.length === 0 || ids.includes(id)) reads.request();
    });
    return () => {
      end();
      reads.stop();
    };
  }, [names, id, again]);
  const isCurrent = state.path === path;
  return {
    value: isCurrent ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    again: () => void again(),
  };
}

/** Reads again from time to time, while `isOn` and the page is looked at. */
export function useAgain(again: () => void, isOn: boolean): void {
  // `again` is another function at each render, and does the same
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [isOn]);
}

/** An error as a sentence, with a button that tries again. */
export function Failure({ error, again }: { error: string; again: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error}</p>
      <button type="button" onClick={again}>
        Try again
      </button>
    </div>
  );
}

/** What an empty list says, and the command that fills it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
