/** The process of diagnosis.ts. The checks block their thread: the main one ends with its core. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Finding } from '../../proto/common/diagnostics.ts';
import type { Diagnosed } from './diagnosis.ts';
import { checkData } from './doctor.ts';

if (isMainThread) watch();
else await check(String(workerData));

function watch(): void {
  // not process.exit(), which waits for the thread
  const end = () => process.kill(process.pid, 'SIGKILL');
  process.once('disconnect', end);
  if (!process.connected) end(); // core has ended before the listener existed
  const report = (result: Diagnosed) => process.send?.(result, () => process.disconnect());
  const worker = new Worker(new URL(import.meta.url), { workerData: process.argv[2] });
  worker.once('message', report);
  worker.once('error', (error) => report({ failed: String(error) }));
}

async function check(dataDir: string): Promise<void> {
  const findings: Finding[] = [];
  for await (const finding of checkData({ TABERN_DATA: dataDir })) findings.push(finding);
  parentPort?.postMessage({ findings } satisfies Diagnosed);
}
