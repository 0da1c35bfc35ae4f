/**
 * Core and gateway in a process of their own, whose memory and event loop are nobody else's, with
 * two tenants and a runner that has its sessions over as soon as they begin. Tells its parent where
 * it is; says what it takes whenever it is asked; ends when its parent lets go of it.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectAll } from '../../../proto/common/idle-gc.ts';
import { openMatrix } from '../tenants/matrix.ts';

/** In milliseconds: what is finer keeps a quiet process busy. */
const RESOLUTION_MS = 10;

export type Told = { url: string; ids: string[] };
/** Memory once all garbage is gone; how late the loop was, at most for 99 of 100 looks. */
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
