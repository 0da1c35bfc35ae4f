/** Keys of the page: what is shown now adds its own, and the help lists them. */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** `keys`: one key, or two after one another, such as `g s`. */
export type Key = { keys: string; does: string; run: () => void };

const SEQUENCE_MS = 1_200;

/** The keys that act now; the last ones win. */
export const active = signal<readonly (readonly Key[])[]>([]);

/** Adds keys while the component is shown. */
export function useKeys(keys: readonly Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  const names = keys.map((one) => one.keys).join();
  // `names` stands for the keys
  useLayoutEffect(() => {
    const own = latest.current.map(({ keys, does }) => {
      const run = () => latest.current.find((one) => one.keys === keys)?.run();
      return { keys, does, run };
    });
    active.value = [...active.value, own];
    return () => {
      active.value = active.value.filter((one) => one !== own);
    };
  }, [names]);
}

/** Listens for keys, for as long as the page is open. */
export function startKeys(): void {
  let before = '';
  let at = 0;
  document.addEventListener('keydown', (event) => {
    const name = nameOf(event);
    const isDialog = document.querySelector('dialog[open]') !== null;
    const isText = isTyping(event.target) && name !== 'Ctrl+K';
    if (event.defaultPrevented || isDialog || isText) return;
    const isSoon = performance.now() - at < SEQUENCE_MS;
    const found = (isSoon ? keyOf(`${before} ${name}`) : undefined) ?? keyOf(name);
    before = name;
    at = performance.now();
    if (found === undefined) return;
    if (event.key === 'Enter' && isOperable(event.target)) return;
    event.preventDefault();
    before = '';
    found.run();
  });
}

function keyOf(name: string): Key | undefined {
  return active.value.flat().findLast(({ keys }) => keys.split(' or ').includes(name));
}

function nameOf(event: KeyboardEvent): string {
  if (event.altKey) return '';
  if (event.ctrlKey || event.metaKey) return `Ctrl+${event.key.toUpperCase()}`;
  if (event.shiftKey && event.key.startsWith('Arrow')) return `Shift+${event.key}`;
  return event.key;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, select, textarea') !== null;
}

/** Enter on a link or a button is the browser's. */
function isOperable(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('a, button, summary') !== null;
}
