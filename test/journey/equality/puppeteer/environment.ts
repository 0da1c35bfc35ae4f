/** Emulation and permissions of a page. */
import { KnownDevices } from 'puppeteer-core';
import type { PuppeteerThing } from './place.ts';

export const ENVIRONMENT: readonly PuppeteerThing[] = [
  {
    name: 'the default window, and navigator.webdriver',
    async run({ page, site }) {
      await page.goto(site.url);
      return await page.evaluate(`[innerWidth, innerHeight, screen.width >= innerWidth,
        devicePixelRatio, navigator.language, navigator.onLine, navigator.webdriver]`);
    },
  },
  {
    name: 'a phone, a time zone, media features, a user agent',
    async run({ page, site }) {
      await page.emulate(KnownDevices['iPhone 13']);
      await page.emulateTimezone('Asia/Tokyo');
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
      await page.emulateMediaType('print');
      await page.emulateCPUThrottling(2);
      await page.goto(site.url);
      const look = `[innerWidth, devicePixelRatio, navigator.maxTouchPoints, navigator.userAgent,
        Intl.DateTimeFormat().resolvedOptions().timeZone, matchMedia('print').matches,
        matchMedia('(prefers-color-scheme: dark)').matches, screen.orientation.type]`;
      const phone = await page.evaluate(look);
      await page.setUserAgent({ userAgent: 'mine' });
      await page.setJavaScriptEnabled(false);
      await page.goto(`data:text/html,<script>document.title = 'ran'</script>`);
      return [phone, await page.evaluate('navigator.userAgent'), await page.title()];
    },
  },
  {
    name: 'permissions and geolocation, granted and cleared',
    async run({ context, page, site }) {
      await page.goto(site.other);
      const names = ['geolocation', 'notifications', 'camera', 'clipboard-read'];
      const look = `Promise.all(${JSON.stringify(names)}.map((name) =>
        navigator.permissions.query({ name }).then((one) => one.state, String)))`;
      const before = await page.evaluate(look);
      await context.overridePermissions(site.other, ['geolocation', 'notifications']);
      await page.setGeolocation({ latitude: 1, longitude: 2 });
      const granted = await page.evaluate(look);
      const place = await page.evaluate(`new Promise((resolve) =>
        navigator.geolocation.getCurrentPosition(({ coords }) => resolve([coords.latitude,
        coords.longitude]), ({ code }) => resolve(code)))`);
      await context.clearPermissionOverrides();
      await context.setPermission(site.other, {
        permission: { name: 'camera' },
        state: 'granted',
      });
      return [before, granted, place, await page.evaluate(look)];
    },
  },
  {
    name: 'CSP is bypassed, the cache is disabled, contexts have separate stores',
    async run({ browser, page, site }) {
      await page.setBypassCSP(true);
      await page.setCacheEnabled(false);
      await page.goto(`${site.url}/strict`);
      await page.addScriptTag({ content: 'window.added = 1' });
      await page.goto(`${site.url}/cookie`);
      await page.evaluate(`localStorage.setItem('k', 'v')`);
      const other = await browser.createBrowserContext();
      const own = await other.newPage();
      await own.goto(site.url);
      const look = `[localStorage.getItem('k'), document.cookie]`;
      const facts = [await own.evaluate(look), await page.evaluate(look)];
      await other.close();
      await page.goto(`${site.url}/strict`);
      const added = await page.addScriptTag({ content: 'window.added = 2' });
      await added.dispose();
      return [facts, await page.evaluate('added')];
    },
  },
];
