/**
 * Core and gateway in a separate process, with its own memory and event loop, with two tenants and
 * a runner whose sessions end at once. Sends its address to its parent, reports its memory and
 * delays on request, and exits when the parent disconnects.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectAll } from '../../../proto/common/idle-gc.ts';
import { openMatrix } from '../tenants/matrix.ts';

/** In milliseconds: a finer resolution keeps an idle process busy. */
const RESOLUTION_MS = 10;

export type Told = { url: string; ids: string[] };
/** Memory after a full collection; the delay of the event loop (p99). */
export type Taken = { rssBytes: number; loopLateMs: number };

const app = await openMatrix();
const over = new AbortController();
const ending = endSessions(over.signal);
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
const told: Told = { url: app.gateway.url, ids: Object.values(app.own.objects) };
process.send?.(told);

process.on('message', () => {
  // Before the collection, which stops the loop itself.
  const loopLateMs = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS);
  collectAll();
  const taken: Taken = {
    rssBytes: process.memoryUsage.rss(),
    loopLateMs,
    ...process.memoryUsage(),
  } as never;
  delay.reset();
  process.send?.(taken);
});
process.on('disconnect', async () => {
  over.abort();
  await ending;
  await app[Symbol.asyncDispose]();
  process.exit(0);
});

async function endSessions(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const { leaseId } of await app.lease('SESSION', 200)) {
      const { runners } = app.clients;
      await runners.startSession({ leaseId, startMs: app.clock.now() }, app.asRunner);
      const end = { leaseId, end: 'COMPLETED', reason: '', proxyBytes: 0 } as const;
      await runners.completeSession(end, app.asRunner);
    }
  }
}
