/** A plain Chrome, as a client launches it: sessions are compared with it. */
import puppeteer from 'puppeteer-core';
import { must } from '../../../proto/common/must.ts';
import { signalGroup } from '../service/processes.ts';

export type PlainChrome = AsyncDisposable & { url: string };

/** `url`: the WebSocket of its browser. */
export async function openPlainChrome(
  program = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium-headless-shell',
  args: readonly string[] = [],
): Promise<PlainChrome> {
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const browser = await puppeteer.launch({
    executablePath: program,
    headless: program.endsWith('shell') ? 'shell' : true,
    args: ['--no-sandbox', '--no-first-run', ...quiet, ...args],
  });
  const group = must(browser.process()?.pid, 'a process');
  return {
    url: browser.wsEndpoint(),
    async [Symbol.asyncDispose]() {
      try {
        await browser.close();
      } finally {
        // Puppeteer waits for the first process alone. A renderer that outlives it keeps the pipe
        // of stderr open, and the test's process would not exit.
        signalGroup(group, 'SIGKILL');
      }
    },
  };
}
