/** The moments of a run's session, which a thread reads from its log. */
import { useEffect, useState } from 'preact/hooks';
import { inProject } from '../../data/api.ts';
import type { FromThread, ToThread } from '../../data/log/messages.ts';
import type { Ticks } from '../../data/log/ticks.ts';
import { logOf } from '../../data/share.ts';
import { threadUrl } from '../../data/thread-url.ts';

/** Ours: the lists are made anew for new entries, so a long log is read more rarely. */
const REFRESH_MS = 4_000;
const REFRESH_FACTOR = 10;
const NONE: Ticks = { ticks: [], isCut: false };

/** Read again while the session runs, and once more at its end. A log that is away has no ticks. */
export function useTicks(sessionId: string, startedAt: number, isRunning: boolean): Ticks {
  const [ticks, setTicks] = useState(NONE);
  useEffect(() => {
    const worker = new Worker(threadUrl(LOG_THREAD), { type: 'module' });
    const path = inProject(logOf(sessionId));
    const tell = (message: ToThread) => worker.postMessage(message);
    let timer: ReturnType<typeof setTimeout>;
    const load = () => {
      if (document.hidden) timer = setTimeout(load, REFRESH_MS);
      else tell({ type: 'load', path, share: '', from: startedAt, to: undefined });
    };
    worker.onmessage = ({ data }: MessageEvent<FromThread>) => {
      if (data.type === 'loaded') tell({ type: 'ticks' });
      if (data.type === 'ticks') setTicks(data);
      const isRead = data.type === 'loaded' || data.type === 'failed';
      if (!isRead || !isRunning) return;
      const tookMs = data.type === 'loaded' ? data.tookMs : REFRESH_MS;
      timer = setTimeout(load, Math.max(REFRESH_MS, REFRESH_FACTOR * tookMs));
    };
    load();
    return () => {
      clearTimeout(timer);
      worker.terminate();
    };
  }, [sessionId, startedAt, isRunning]);
  return ticks;
}
