/** What loading a driver costs: test/bench/load.ts asks its thread. */
import { chromium } from 'playwright-core';
import { defineFn } from 'tabern';

defineFn('f', async () => {
  chromium.name();
  return process.threadCpuUsage();
});
