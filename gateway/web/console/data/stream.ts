/** The stream of changes. It is opened again, with growing pauses, while the login lasts. */
import type { Change } from './types.ts';

/** A change, whether the stream is connected, or the end of the login. */
export type StreamMessage = { change: Change } | { isLive: boolean } | { isEnded: true };

export const URL_OF_CHANGES = '/console/api/v1/changes';
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 10_000;
/** Ours: without a heartbeat for longer than two of them, the connection is dead. */
const SILENCE_MS = 35_000;

/** `open` connects at once when it is not; `stop` forgets the login. */
export type Changes = { open(): void; stop(): void };

/** Reports changes and the state of the stream at that path. */
export function openChanges(path: string, tell: (message: StreamMessage) => void): Changes {
  let source: EventSource | undefined;
  let retryMs = RETRY_FIRST_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let version = '';

  const retry = () => {
    source?.close();
    source = undefined;
    tell({ isLive: false });
    clearTimeout(timer);
    timer = setTimeout(connect, retryMs);
    retryMs = Math.min(2 * retryMs, RETRY_MAX_MS);
  };
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(retry, SILENCE_MS);
  };
  const stop = () => {
    source?.close();
    source = undefined;
    version = ''; // versions are of one project
    clearTimeout(timer);
    tell({ isLive: false });
  };
  const end = () => {
    stop();
    tell({ isEnded: true });
  };
  function connect(): void {
    clearTimeout(timer);
    const query = version === '' ? '' : `?after=${encodeURIComponent(version)}`;
    source = new EventSource(path + query);
    source.onopen = () => {
      retryMs = RETRY_FIRST_MS;
      tell({ isLive: true });
      heard();
    };
    source.onmessage = ({ data, lastEventId }: MessageEvent<string>) => {
      heard();
      if (lastEventId !== '') version = lastEventId;
      const change = changeOf(data);
      if (change !== undefined) tell({ change });
    };
    source.addEventListener('heartbeat', heard);
    source.addEventListener('end', end);
    source.onerror = retry;
  }
  connect();
  return {
    open() {
      if (source === undefined) connect();
    },
    stop,
  };
}

function changeOf(text: string): Change | undefined {
  try {
    const { kind, ids } = JSON.parse(text) as Partial<Change>;
    return typeof kind === 'string' ? { kind, ids: Array.isArray(ids) ? ids : [] } : undefined;
  } catch {
    return undefined; // the next message is read again
  }
}
