/** A person at the console: a Chrome of their own, and everything that it must not do. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { must } from '../../../proto/common/must.ts';
import { until } from '../poll.ts';
import { openPlainChrome } from '../runner/plain-chrome.ts';
import type { Stack } from '../service/stack.ts';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const WIDE = { width: 1280, height: 800 };
/** Of violations of the Content-Security-Policy. */
const REPORT = `addEventListener('securitypolicyviolation', (event) => {
  console.error('the policy ' + event.violatedDirective + ' refused ' + event.blockedURI);
});`;
/** Sent by the browser for the console and no part of it. */
const EXPECTED_ERRORS = /status of (?:400|401|404|410)|\/view\?.*response code: 410/;

export type Person = AsyncDisposable & {
  page: Page;
  context: BrowserContext;
  /** Requests to other origins, violations of the policy, errors of scripts, dialogs. */
  faults: string[];
  /** URLs that were requested since the last call. */
  requested(): string[];
};

/** A person at the login of the console; `options` are of Playwright's context. */
export async function openConsole(
  stack: Stack,
  path = '/console',
  options: BrowserContextOptions = {},
): Promise<Person> {
  await using cleanup = new AsyncDisposableStack();
  const chrome = cleanup.use(await openPlainChrome());
  const browser = await chromium.connectOverCDP(chrome.url);
  cleanup.defer(() => browser.close());
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  const urls: string[] = [];
  page.on('request', (request) => {
    urls.push(request.url());
    const isOwn = /^(?:blob|data):/.test(request.url()) || request.url().startsWith(stack.url);
    if (!isOwn) faults.push(`a request to ${request.url()}`);
  });
  page.on('pageerror', (error) => faults.push(`${error.stack ?? error}`));
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (line) => {
    const isFault = line.type() === 'error' && !EXPECTED_ERRORS.test(line.text());
    if (isFault) faults.push(line.text());
  });
  await page.addInitScript({ content: REPORT });
  await page.goto(stack.url + path);
  const kept = cleanup.move();
  return {
    page,
    context,
    faults,
    requested: () => urls.splice(0),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Logs in by keys alone: the box of the key has the focus. */
export async function logIn({ page }: Person, { apiKey }: Stack): Promise<void> {
  await page.locator('#key:focus').waitFor();
  await page.keyboard.insertText(apiKey);
  await page.keyboard.press('Enter');
  await page.locator('.rail').waitFor();
}

/** What axe-core finds to be a serious or critical defect: one line each. */
export async function seriousDefects(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(AXE, 'utf8'));
  const code = `axe.run(document, { iframes: false }).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target.join(' '))))`;
  return page.evaluate<string[]>(code);
}

/** The same in both themes. */
export async function defectsInBoth({ page }: Person): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    found.push(...(await seriousDefects(page)).map((one) => `${colorScheme} ${one}`));
  }
  return found;
}

/** Waits until the text is on the page. */
export async function untilText(page: Page, selector: string, text: string): Promise<void> {
  await until(async () => (await page.locator(selector).allInnerTexts()).join().includes(text));
}

/** The rows of a table, as texts. */
export async function rowsOf(page: Page): Promise<string[]> {
  return must(await page.locator('tbody tr').allInnerTexts(), 'rows');
}
