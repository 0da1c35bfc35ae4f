/**
 * The process of core/store/check.ts. The check blocks its thread, so it runs in a worker: the main
 * thread notices that core has ended, even by kill -9, and ends the process at once. A check that
 * outlives its core would hold the database open, and each restart would add one.
 */
import { Worker } from 'node:worker_threads';
import type { Checked } from '../../check.ts';

// not process.exit(), which waits for the thread
const end = () => process.kill(process.pid, 'SIGKILL');
process.once('disconnect', end);
if (!process.connected) end(); // core has ended before the listener existed

const worker = new Worker(new URL('./check-thread.ts', import.meta.url), {
  workerData: process.argv[2],
});
worker.once('message', report);
worker.once('error', (error) => report({ failed: String(error) }));

function report(result: Checked): void {
  process.send?.(result, () => process.disconnect());
}
