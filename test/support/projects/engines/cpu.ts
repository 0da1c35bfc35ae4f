/** The cost of loading a driver, for test/bench/load.ts, which reads the thread's CPU time. */
import { chromium } from 'playwright-core';
import { defineFn } from 'tabern';

defineFn('f', async () => {
  chromium.name();
  return process.threadCpuUsage();
});
