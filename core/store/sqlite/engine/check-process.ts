/**
 * The process of core/store/check.ts. The check occupies its thread, so it has one of its own: this
 * one hears that core is gone, even by kill -9, and ends the process at once. A check that outlives
 * its core would hold the database open, and each restart would add one.
 */
import { Worker } from 'node:worker_threads';
import type { Checked } from '../../check.ts';

// not process.exit(), which waits for the thread
const end = () => process.kill(process.pid, 'SIGKILL');
process.once('disconnect', end);
if (!process.connected) end(); // core was gone before this could listen

const worker = new Worker(new URL('./check-thread.ts', import.meta.url), {
  workerData: process.argv[2],
});
worker.once('message', tell);
worker.once('error', (error) => tell({ failed: String(error) }));

function tell(said: Checked): void {
  process.send?.(said, () => process.disconnect());
}
