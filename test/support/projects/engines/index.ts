/**
 * Features of the host that functions may use, one handler each: test/runner/host/engines.test.ts
 * runs the same bundle on every engine and in every sandbox, and compares.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { defineFn } from 'tabern';
import { fail } from './fail.ts';

defineFn('trivial', async () => 'hello');

defineFn('context', async (ctx, params) => ({
  ...{ params, same: ctx.params === params, secrets: ctx.secrets, keys: Object.keys(ctx).sort() },
  session: [ctx.session.id, new URL(ctx.session.connectUrl).hostname],
  invocation: Object.keys(ctx.invocation),
  aborted: ctx.signal.aborted,
  env: Object.keys(process.env).sort(),
}));

defineFn('nothing', async () => undefined);
defineFn('bigint', async () => ({ n: 1n }));
defineFn('cycle', async () => {
  const cycle: Record<string, unknown> = {};
  cycle['itself'] = cycle;
  return cycle;
});

defineFn('thrown', async (_, { depth }: { depth: number }) => fail(depth));
defineFn('text', async () => {
  throw 'a text';
});
defineFn('floating', async () => {
  void Promise.reject(new RangeError('nobody waits'));
  await sleep(60_000);
});
defineFn('late', async () => {
  setTimeout(() => fail(1), 1);
  await sleep(60_000);
});
defineFn('exit', async () => process.exit(3));

defineFn('console', async () => {
  console.log('text', { a: [1, 'two', null], b: new Map([['k', 1n]]) }, [undefined, Symbol('s')]);
  console.info('%s has %d, %o', 'format', 7.5, { nested: true });
  console.warn('warned');
  console.error('failed: %s', new TypeError('in a line').message);
  console.debug('debugged');
  console.group('group');
  console.log('within');
  console.groupEnd();
  console.table([{ a: 1, b: 'x' }]);
  console.assert(1 > 2, 'it is not');
  console.dir({ deep: { deep: { deep: { deep: 1 } } } });
  console.count();
  process.stdout.write('one ');
  process.stdout.write('line\nand another\n');
  process.stderr.write('to stderr\n');
});

defineFn('timers', async () => {
  const order: string[] = [];
  const timer = setTimeout(() => order.push('cancelled'), 5);
  clearTimeout(timer);
  setTimeout(() => order.push('timeout'), 1);
  await Promise.resolve().then(() => order.push('microtask'));
  process.nextTick(() => order.push('tick'));
  await sleep(30);
  const over = AbortSignal.timeout(1);
  const reason = await new Promise<DOMException>((resolve) => {
    over.addEventListener('abort', () => resolve(over.reason as DOMException));
  });
  const refused = await sleep(60_000, undefined, { signal: over }).catch((error) => error.name);
  return { order, reason: [reason.name, reason.message], refused };
});

defineFn('aborted', async (ctx) => {
  console.log('begun');
  await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  console.log('told:', ctx.signal.reason.message);
});

defineFn('modules', async () => {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('x'));
  return {
    hash: createHash('sha256').update('x').digest('hex') === Buffer.from(digest).toString('hex'),
    path: join('/a', '../b'),
    zip: gunzipSync(gzipSync('text')).toString(),
    url: new URL('../x?y=ü', 'https://a.test/b/c').href,
    clone: structuredClone({ date: new Date(0), set: new Set([1]) }).date.toISOString(),
    base64: btoa('a') + Buffer.from('b').toString('base64url'),
    sorted: ['ä', 'z', 'a'].sort(new Intl.Collator('de').compare),
  };
});

type Site = { url: string };

defineFn('playwright', async ({ session }, { url }: Site) => {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = await browser.newPage();
  page.on('console', (message) => console.log('page:', message.text()));
  await page.goto(url);
  const sum = await page.evaluate(
    ([a, b]) => {
      console.log('summed');
      return a + b;
    },
    [1, 2] as const,
  );
  const found = { title: await page.title(), sum, text: await page.locator('title').count() };
  await page.close();
  await browser.close();
  return found;
});

defineFn('puppeteer', async ({ session }, { url }: Site) => {
  const browser = await puppeteer.connect({ browserWSEndpoint: session.connectUrl });
  const page = await browser.newPage();
  await page.goto(url);
  const found = { title: await page.title(), sum: await page.evaluate((a, b) => a + b, 1, 2) };
  await page.close();
  await browser.disconnect();
  return found;
});
