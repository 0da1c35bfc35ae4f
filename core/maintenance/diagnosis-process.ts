/** The process of diagnosis.ts. The checks block their thread: the main one ends with its core. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Finding } from '../../proto/common/diagnostics.ts';
import type { Env } from '../../proto/common/env.ts';
import type { Diagnosed } from './diagnosis.ts';
import { checkData } from './doctor.ts';

if (isMainThread) watch();
else await check(workerData);

function watch(): void {
  // not process.exit(), which waits for the thread
  const end = () => process.kill(process.pid, 'SIGKILL');
  process.once('disconnect', end);
  if (!process.connected) end(); // core has ended before the listener existed
  const report = (result: Diagnosed) => process.send?.(result, () => process.disconnect());
  process.once('message', (settings: Env) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: settings });
    worker.once('message', report);
    worker.once('error', (error) => report({ failed: String(error) }));
  });
}

async function check(settings: Env): Promise<void> {
  const findings: Finding[] = [];
  for await (const finding of checkData(settings)) findings.push(finding);
  parentPort?.postMessage({ findings } satisfies Diagnosed);
}
