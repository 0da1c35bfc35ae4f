/** One line that says what has happened; screen readers speak it. */
import { signal } from '@preact/signals';

const SHOWN_MS = 4_000;

const text = signal('');
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(sentence: string): void {
  text.value = sentence;
  clearTimeout(timer);
  timer = setTimeout(() => {
    text.value = '';
  }, SHOWN_MS);
}

export function Notice() {
  return (
    <p class="notice" role="status" data-shown={text.value !== ''}>
      {text.value}
    </p>
  );
}
