/** Changes of the project as they happen. Without the stream, everything is read each 10 s. */
import { signal } from '@preact/signals';
import { me } from './api.ts';
import { openChanges, type StreamMessage } from './stream.ts';
import { threadUrl } from './thread-url.ts';
import type { Change } from './types.ts';

const POLL_MS = 10_000;

/** Whether changes arrive by the stream. */
export const isLive = signal(false);

const listeners = new Set<(change: Change) => void>();
let restart: (() => void) | undefined;

/** Opens the stream, once; after a login it connects at once. */
export function startChanges(): void {
  if (restart !== undefined) {
    restart();
    return;
  }
  if (typeof SharedWorker === 'undefined') {
    restart = openChanges(receive).open;
  } else {
    const worker = new SharedWorker(threadUrl(CHANGES_THREAD), { type: 'module' });
    worker.port.onmessage = ({ data }) => receive(data as StreamMessage);
    restart = () => worker.port.postMessage('open');
    restart();
    addEventListener('pagehide', () => worker.port.postMessage('close'));
  }
  setInterval(() => {
    if (!isLive.value && !document.hidden) tell({ kind: 'ALL', ids: [] });
  }, POLL_MS);
}

/** Calls `listener` for changes of these kinds; returns the end of it. */
export function onChange(kinds: readonly string[], listener: (change: Change) => void): () => void {
  const own = (change: Change) => {
    if (change.kind === 'ALL' || kinds.includes(change.kind)) listener(change);
  };
  listeners.add(own);
  return () => listeners.delete(own);
}

function receive(message: StreamMessage): void {
  if ('isLive' in message) isLive.value = message.isLive;
  else if ('isEnded' in message) me.value = null;
  else tell(message.change);
}

function tell(change: Change): void {
  for (const listener of listeners) listener(change);
}
