/** Cookies, stores, workers, and the separation of contexts. */
import { join } from 'node:path';
import type { PlaywrightThing } from './place.ts';

export const STORAGE: readonly PlaywrightThing[] = [
  {
    name: 'cookies: set by a site, by a page, by a driver; cleared',
    async run({ context, page, site }) {
      await page.goto(`${site.url}/cookie`);
      // The page reads the cookie back, because Chrome stores what a page sets a moment later.
      await page.evaluate(`document.cookie = 'c=3; max-age=1000'; document.cookie`);
      await context.addCookies([
        { name: 'd', value: '4', url: site.url, sameSite: 'Lax', secure: false },
        { name: 'e', value: '5', domain: 'named.example', path: '/p', expires: 4_000_000_000 },
      ]);
      const all = (await context.cookies()).map(({ expires, ...one }) => ({
        ...one,
        lasts: expires > 0,
      }));
      const visible = await page.evaluate('document.cookie');
      await context.clearCookies({ name: 'a' });
      const left = (await context.cookies(site.url)).map(({ name }) => name).sort();
      return [all.sort((a, b) => a.name.localeCompare(b.name)), visible, left];
    },
  },
  {
    name: 'storage state moves to another context',
    async run({ browser, context, page, site }) {
      await page.goto(`${site.url}/cookie`);
      await page.evaluate(`localStorage.setItem('k', 'v')`);
      const state = await context.storageState();
      const other = await browser.newContext({ storageState: state });
      const copy = await other.newPage();
      await copy.goto(site.url);
      const found = await copy.evaluate(`[localStorage.getItem('k'), document.cookie]`);
      await other.close();
      return [state.origins, state.cookies.map(({ name }) => name).sort(), found];
    },
  },
  {
    name: 'storage state in a file, with IndexedDB',
    async run({ browser, context, page, site, directory }) {
      await page.goto(`${site.url}/cookie`);
      await page.evaluate(`new Promise((resolve, reject) => {
        const opening = indexedDB.open('d', 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore('s').put('v', 'k');
        opening.onsuccess = () => resolve(opening.result.close());
        opening.onerror = () => reject(opening.error);
      })`);
      const path = join(directory, 'state.json');
      await context.storageState({ path, indexedDB: true });
      const other = await browser.newContext({ storageState: path });
      const copy = await other.newPage();
      await copy.goto(site.url);
      const found = await copy.evaluate(`new Promise((resolve) => {
        indexedDB.open('d', 1).onsuccess = ({ target: { result } }) => {
          result.transaction('s').objectStore('s').get('k').onsuccess =
            ({ target }) => resolve([target.result, document.cookie]);
        };
      })`);
      await other.close();
      return found;
    },
  },
  {
    name: 'contexts have separate stores',
    async run({ browser, page, site }) {
      await page.goto(`${site.url}/cookie`);
      await page.evaluate(`localStorage.setItem('k', 'v')`);
      const other = await browser.newContext();
      const own = await other.newPage();
      await own.goto(site.url);
      const found = await own.evaluate(`[localStorage.getItem('k'), document.cookie]`);
      await other.close();
      return found;
    },
  },
  {
    name: 'IndexedDB, caches and the quota',
    async run({ page, site }) {
      await page.goto(site.other);
      return await page.evaluate(`(async () => {
        const database = await new Promise((resolve, reject) => {
          const opening = indexedDB.open('d', 1);
          opening.onupgradeneeded = () => opening.result.createObjectStore('s');
          opening.onsuccess = () => resolve(opening.result);
          opening.onerror = () => reject(opening.error);
        });
        const read = await new Promise((resolve) => {
          const store = database.transaction('s', 'readwrite').objectStore('s');
          store.put({ a: new Date(0) }, 'k');
          store.get('k').onsuccess = ({ target }) => resolve(target.result.a.getTime());
        });
        const cache = await caches.open('c');
        await cache.add('/data.json');
        const cached = await (await cache.match('/data.json')).json();
        const { quota } = await navigator.storage.estimate();
        return [read, cached, quota > 1e6, await navigator.storage.persisted()];
      })()`);
    },
  },
  {
    name: 'BroadcastChannel, storage events and locks between tabs',
    async run({ context, page, site }) {
      const other = await context.newPage();
      await Promise.all([page.goto(site.other), other.goto(`${site.other}/two`)]);
      await page.evaluate(`window.seen = [];
        new BroadcastChannel('c').onmessage = ({ data }) => seen.push(data);
        addEventListener('storage', ({ key, newValue }) => seen.push([key, newValue]));`);
      await other.evaluate(`new BroadcastChannel('c').postMessage({ a: 1 })`);
      await page.waitForFunction('seen.length === 1');
      await other.evaluate(`localStorage.setItem('k', 'v')`);
      await page.waitForFunction('seen.length === 2');
      return [
        await page.evaluate('seen'),
        await other.evaluate(`navigator.locks.request('l', () => 7)`),
      ];
    },
  },
  {
    name: 'a worker, seen by the driver',
    async run({ page, site }) {
      await page.goto(site.url);
      const started = page.waitForEvent('worker');
      const doubled = page.evaluate(`new Promise((resolve) => {
        window.own = new Worker('/worker.js');
        own.onmessage = ({ data }) => resolve(data);
        own.postMessage(21);
      })`);
      const worker = await started;
      const facts = [await doubled, worker.url(), await worker.evaluate('self.constructor.name')];
      const seen = await worker.evaluate(
        '[navigator.onLine, navigator.language, navigator.userAgent]',
      );
      const closed = worker.waitForEvent('close');
      await page.evaluate('own.terminate()');
      await closed;
      return [facts, seen];
    },
  },
  {
    name: 'a shared worker of two tabs',
    async run({ context, page, site }) {
      const other = await context.newPage();
      await Promise.all([page.goto(site.url), other.goto(site.url)]);
      const connect = `new Promise((resolve) => {
        new SharedWorker('/shared.js').port.onmessage = ({ data }) => resolve(data);
      })`;
      return [await page.evaluate(connect), await other.evaluate(connect)];
    },
  },
  {
    name: 'a service worker answers requests',
    async run({ context, page, site }) {
      await page.goto(site.other);
      const started = context.waitForEvent('serviceworker');
      await page.evaluate(`navigator.serviceWorker.register('/sw.js')`);
      const worker = await started;
      await page.waitForFunction('navigator.serviceWorker.controller');
      const answered = page.waitForResponse('**/from-worker');
      const text = await page.evaluate(`fetch('/from-worker').then((r) => r.text())`);
      return [worker.url(), text, (await answered).fromServiceWorker()];
    },
  },
];
