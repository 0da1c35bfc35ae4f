/** Opens a page and reads its title: the first function of most people. */

import { defineFn } from '@browserbasehq/sdk-functions';
import { chromium } from 'playwright-core';
import { z } from 'zod';
import './more.ts';

defineFn('title', async (ctx, params) => {
  const { url } = z.object({ url: z.string() }).parse(params);
  console.log('opening', url);
  const browser = await chromium.connectOverCDP(ctx.session.connectUrl);
  try {
    const context = browser.contexts()[0] ?? (await browser.newContext());
    const page = context.pages()[0] ?? (await context.newPage());
    await page.goto(url);
    const title = await page.title();
    const links = await page.locator('a').count();
    if (links === 0) console.warn('the page has no links');
    return { title, links };
  } catch (error) {
    console.error('the page did not open');
    throw error;
  } finally {
    await browser.close();
  }
});
