/** Popups, workers, raw CDP sessions, and several clients of one browser. */
import { reported } from '../thing.ts';
import type { PuppeteerThing } from './place.ts';

export const TARGETS: readonly PuppeteerThing[] = [
  {
    name: 'a popup, its opener and its close',
    async run({ page, site }) {
      await page.goto(site.url);
      const opened = new Promise<typeof page | null>((resolve) => page.once('popup', resolve));
      await page.evaluate(`void (window.own = open('/two', '', 'width=400,height=300'))`);
      const popup = await opened;
      if (!popup) throw new Error('no popup');
      await popup.waitForSelector('h1');
      const closed = new Promise((resolve) => popup.once('close', resolve));
      const isOpener = popup.target().opener() === page.target();
      const facts = [await popup.title(), isOpener, await popup.evaluate('!!opener')];
      await page.evaluate('own.close()');
      await closed;
      return [...facts, await page.evaluate('own.closed')];
    },
  },
  {
    name: 'waitForTarget, and a link with target=_blank',
    async run({ context, page, site }) {
      await page.goto(site.url);
      await page.setContent('<a target=_blank rel=noopener href="/two">x</a>');
      const [target] = await Promise.all([
        context.waitForTarget((one) => one.url().endsWith('/two')),
        page.click('a'),
      ]);
      const popup = await target.page();
      return [target.type(), await popup?.title(), context.targets().length];
    },
  },
  {
    name: 'a worker, seen by the driver',
    async run({ page, site }) {
      await page.goto(site.url);
      const created = new Promise<void>((resolve) => page.once('workercreated', () => resolve()));
      const doubled = page.evaluate(`new Promise((resolve) => {
        window.own = new Worker('/worker.js');
        own.onmessage = ({ data }) => resolve(data);
        own.postMessage(21);
      })`);
      await created;
      const [worker] = page.workers();
      const facts = [await doubled, worker?.url(), await worker?.evaluate('navigator.onLine')];
      const ended = new Promise<void>((resolve) => page.once('workerdestroyed', () => resolve()));
      await page.evaluate('own.terminate()');
      await ended;
      return [facts, page.workers().length];
    },
  },
  {
    name: 'a service worker is a target, and answers requests',
    async run({ context, page, site }) {
      await page.goto(site.other);
      const started = context.waitForTarget((one) => one.type() === 'service_worker');
      await page.evaluate(`void navigator.serviceWorker.register('/sw.js')`);
      const worker = await (await started).worker();
      await page.waitForFunction('navigator.serviceWorker.controller');
      const [response, text] = await Promise.all([
        page.waitForResponse((one) => one.url().endsWith('/from-worker')),
        page.evaluate(`fetch('/from-worker').then((r) => r.text())`),
      ]);
      return [await worker?.evaluate('registration.scope'), text, response.fromServiceWorker()];
    },
  },
  {
    name: 'a second client lists the tabs, which stay open when it disconnects',
    async run({ browser, connect, context, page, site }) {
      await page.goto(site.url);
      const second = await connect();
      const own = second.browserContexts().find((one) => one.id === context.id);
      const [same] = (await own?.pages()) ?? [];
      await same?.evaluate(`document.title = 'changed'`);
      const made = await own?.newPage();
      await made?.goto(`${site.url}/two`);
      await second.disconnect();
      const urls = (await context.pages()).map((one) => one.url());
      const facts = [same?.url(), await page.title(), urls, second.connected, browser.connected];
      const third = await connect();
      const again = third.browserContexts().find((one) => one.id === context.id);
      const left = (await again?.pages())?.length;
      await third.disconnect();
      return [...facts, left, await page.evaluate('1 + 1')];
    },
  },
  {
    name: 'raw CDP sessions of a page and of the browser',
    async run({ browser, page, site }) {
      await page.goto(site.url);
      const raw = await page.createCDPSession();
      const { root } = await raw.send('DOM.getDocument');
      const { nodeId } = await raw.send('DOM.querySelector', {
        nodeId: root.nodeId,
        selector: 'h1',
      });
      const { outerHTML } = await raw.send('DOM.getOuterHTML', { nodeId });
      const unknown = await raw.send('Foo.bar' as 'DOM.enable').catch(reported);
      const wrong = await raw.send('DOM.getOuterHTML', { nodeId: -1 }).catch(reported);
      await raw.detach();
      const gone = await raw.send('DOM.enable').catch(reported);
      const whole = await browser.target().createCDPSession();
      const { product, protocolVersion } = await whole.send('Browser.getVersion');
      await whole.detach();
      const { length } = await browser.userAgent();
      const facts = [product, protocolVersion, await browser.version(), length > 0];
      return [outerHTML, unknown, wrong, gone, facts];
    },
  },
];
