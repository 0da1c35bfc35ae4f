/** Changes of the project as they happen. Without the stream, everything is read each 10 s. */
import { effect, signal } from '@preact/signals';
import { inProject, isOperator, me } from './api.ts';
import { openChanges, type StreamMessage, URL_OF_CHANGES } from './stream.ts';
import { threadUrl } from './thread-url.ts';
import type { Change } from './types.ts';

const POLL_MS = 10_000;

/** Whether changes arrive by the stream. */
export const isLive = signal(false);

/** `leave`: this tab no longer listens; others may. */
type Changes = { open(): void; stop(): void; leave(): void };
type Receive = (message: StreamMessage) => void;

let isPolling = false;

const listeners = new Set<(change: Change) => void>();
let stream: { path: string; changes: Changes } | undefined;
let isStarted = false;

/** Opens the stream of this login and the page's project. It stops when the login ends. */
export function startChanges(): void {
  if (me.value) follow(inProject(URL_OF_CHANGES));
  if (isStarted) return;
  isStarted = true;
  effect(() => {
    if (me.value === null) stream?.changes.stop();
    else if (isOperator()) follow(inProject(URL_OF_CHANGES));
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

/** An operator login without a project has no stream: its pages are read again each 10 s. */
function follow(path: string): void {
  if (stream?.path === path) {
    stream.changes.open();
    return;
  }
  stream?.changes.leave();
  stream = undefined;
  if (isOperator() && path === URL_OF_CHANGES) {
    isLive.value = false;
    return;
  }
  const open = typeof SharedWorker === 'undefined' ? openOwn : openShared;
  stream = { path, changes: open(path, receiverOf(path)) };
}

function openOwn(path: string, tell: Receive): Changes {
  const changes = openChanges(path, tell);
  return { ...changes, leave: changes.stop };
}

function openShared(path: string, tell: Receive): Changes {
  const { port } = new SharedWorker(threadUrl(CHANGES_THREAD), { type: 'module', name: path });
  const open = () => port.postMessage('open');
  let isLeft = false;
  port.onmessage = ({ data }) => tell(data as StreamMessage);
  const close = () => port.postMessage('close');
  addEventListener('pagehide', close);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && !isLeft) open();
  });
  open();
  const leave = () => {
    isLeft = true;
    close();
    port.close();
  };
  return { open, leave, stop: () => port.postMessage('stop') };
}

/** What arrives late of a stream that was left is of another project. */
function receiverOf(path: string): Receive {
  return (message) => {
    if (stream === undefined || stream.path === path) receive(message);
  };
}

function receive(message: StreamMessage): void {
  if ('isLive' in message) isLive.value = message.isLive;
  else if ('isEnded' in message) me.value = null;
  else tell(message.change);
}

function tell(change: Change): void {
  for (const listener of listeners) listener(change);
}
