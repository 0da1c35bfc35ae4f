/** A plain Chrome, as a client launches it: sessions are compared with it. */
import puppeteer from 'puppeteer-core';

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
  return { url: browser.wsEndpoint(), [Symbol.asyncDispose]: () => browser.close() };
}
