/**
 * The documents in a real browser, under their strict policy: the guide with its search, and the
 * API reference with every operation. Requests go to the service alone.
 */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CONTENTS } from '../../../gateway/packaging/guide/contents.ts';
import { must } from '../../../proto/common/must.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/install/docs');

journey('the page shows the API description, with scripts of this host only', async () => {
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
  await page.goto(`${stack.url}/docs/api`);
  await page.waitForSelector('.opblock', { timeout: 60_000 });
  assert.is(await page.locator('.opblock').count(), operations.length);
  await page.locator('.opblock', { hasText: 'POST/v1/contexts' }).first().click();
  await page.locator('.opblock.is-open .responses-table').first().waitFor({ timeout: 60_000 });
  for (const url of asked) assert.ok(url.startsWith(stack.url) || url.startsWith('data:'), url);
  assert.equal(refused, []);
  await browser.close();
});

journey('every page of the guide opens, and the search finds a setting', async () => {
  await using stack = await boot();
  const session = await stack.call<{ connectUrl: string }>('/v1/sessions', { method: 'POST' });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the page of the session');
  const requested: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.goto(`${stack.url}/docs`);
  const links = page.locator('.pages a');
  const paths = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
  assert.is(paths.length, CONTENTS.flatMap(({ pages }) => pages).length);
  for (const path of paths) {
    const answer = await page.goto(stack.url + path);
    assert.is(answer?.status(), 200, path);
    assert.is(await page.locator('.pages a[aria-current]').getAttribute('href'), path);
  }
  await page.keyboard.press('/');
  await page.keyboard.type('TABERN_SESSION_DAYS');
  await page.locator('#found a', { hasText: 'Configuration' }).first().click();
  await page.waitForURL(/\/docs\/configuration#settings$/);
  assert.equal(errors, []);
  for (const url of requested) assert.ok(url.startsWith(stack.url), url);
  await browser.close();
});

journey.run();
