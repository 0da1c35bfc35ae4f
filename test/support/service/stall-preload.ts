/**
 * Loaded by `node --import`: SIGUSR2 blocks the main thread for as many milliseconds as the file
 * TABERN_TEST_STALL contains, without using the processor. The file is removed first. Its tracer
 * creates no spans: `tabern serve` passes its preloads to the runner only beside an SDK.
 */
import { readFileSync, rmSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { trace } from '@opentelemetry/api';
import { must } from '../../../proto/common/must.ts';
import { spanProvider } from './spans.ts';

if (isMainThread) {
  trace.setGlobalTracerProvider(spanProvider(() => {}));
  const file = must(process.env['TABERN_TEST_STALL'], 'the file with the milliseconds');
  process.on('SIGUSR2', () => {
    const blocked = new Int32Array(new SharedArrayBuffer(4));
    const ms = Number(readFileSync(file, 'utf8'));
    rmSync(file);
    Atomics.wait(blocked, 0, 0, ms);
  });
}
