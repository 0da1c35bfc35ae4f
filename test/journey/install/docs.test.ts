/** GET /docs in a real browser: it shows every operation, and asks nobody but the service. */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/install/docs');

journey(
  'the page shows the description, under its strict policy, from this host alone',
  async () => {
    await using stack = await boot();
    const { paths } = await stack.call<{ paths: Record<string, object> }>('/openapi.json');
    const operations = Object.values(paths).flatMap((verbs) => Object.keys(verbs));
    const session = await stack.call<{ connectUrl: string }>('/v1/sessions', { method: 'POST' });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = await browser.contexts()[0]?.newPage();
    if (!page) throw new Error('the session has no page');
    const asked: string[] = [];
    const refused: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('console', (line) => {
      if (line.type() === 'error') refused.push(line.text());
    });
    page.on('pageerror', (error) => refused.push(String(error)));
    await page.goto(`${stack.url}/docs`);
    await page.waitForSelector('.opblock', { timeout: 60_000 });
    assert.is(await page.locator('.opblock').count(), operations.length);
    await page.locator('.opblock', { hasText: 'POST/v1/contexts' }).first().click();
    await page.locator('.opblock.is-open .responses-table').first().waitFor({ timeout: 60_000 });
    for (const url of asked) assert.ok(url.startsWith(stack.url) || url.startsWith('data:'), url);
    assert.equal(refused, []);
    await browser.close();
  },
);

journey.run();
