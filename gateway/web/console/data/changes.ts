/** Changes of the project as they happen. Without the stream, everything is read each 10 s. */
import { effect, signal } from '@preact/signals';
import { me } from './api.ts';
import { type Changes, openChanges, type StreamMessage } from './stream.ts';
import { threadUrl } from './thread-url.ts';
import type { Change } from './types.ts';

const POLL_MS = 10_000;

/** Whether changes arrive by the stream. */
export const isLive = signal(false);

const listeners = new Set<(change: Change) => void>();
let stream: Changes | undefined;
let isPolling = false;

/** Opens the stream of this login. It stops when the login ends. */
export function startChanges(): void {
  if (stream !== undefined) {
    stream.open();
    return;
  }
  stream = typeof SharedWorker === 'undefined' ? openChanges(receive) : openShared();
  effect(() => {
    if (me.value === null) stream?.stop();
  });
  pollChanges();
}

/** Without a stream everything is read again each 10 s, in a page that is looked at. */
export function pollChanges(): void {
  if (isPolling) return;
  isPolling = true;
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

function openShared(): Changes {
  const { port } = new SharedWorker(threadUrl(CHANGES_THREAD), { type: 'module' });
  const open = () => port.postMessage('open');
  port.onmessage = ({ data }) => receive(data as StreamMessage);
  addEventListener('pagehide', () => port.postMessage('close'));
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) open();
  });
  open();
  return { open, stop: () => port.postMessage('stop') };
}

function receive(message: StreamMessage): void {
  if ('isLive' in message) isLive.value = message.isLive;
  else if ('isEnded' in message) me.value = null;
  else tell(message.change);
}

function tell(change: Change): void {
  for (const listener of listeners) listener(change);
}
