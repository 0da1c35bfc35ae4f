/** Tabs, history, frames, dialogs, and messages of pages. */
import { reported } from '../thing.ts';
import type { PlaywrightThing } from './place.ts';

export const PAGES: readonly PlaywrightThing[] = [
  {
    name: 'tabs are opened, listed and closed',
    async run({ context, page, site }) {
      const second = await context.newPage();
      await second.goto(site.url);
      const open = context.pages().map((one) => one.url());
      const closed = second.waitForEvent('close');
      await second.close();
      await closed;
      return [open, second.isClosed(), context.pages().length, page.isClosed()];
    },
  },
  {
    name: 'a popup, its opener, its features and its close',
    async run({ page, site }) {
      await page.goto(site.url);
      const opened = page.waitForEvent('popup');
      await page.evaluate(`void (window.own = open('/two', '', 'width=400,height=300'))`);
      const popup = await opened;
      await popup.waitForLoadState();
      const isOpener = (await popup.opener()) === page;
      const closed = popup.waitForEvent('close');
      const facts = [await popup.title(), isOpener, await popup.evaluate('!!opener')];
      await page.evaluate('own.close()');
      await closed;
      return [...facts, await page.evaluate('own.closed')];
    },
  },
  {
    name: 'a link with target=_blank and noopener',
    async run({ context, page, site }) {
      await page.goto(site.url);
      await page.setContent('<a target=_blank rel=noopener href="/two">x</a>');
      const [popup] = await Promise.all([context.waitForEvent('page'), page.click('a')]);
      await popup.waitForLoadState();
      return [popup.url(), await popup.evaluate('opener'), (await popup.opener()) === null];
    },
  },
  {
    name: 'history: back, forward, reload, pushState, hash',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.goto(`${site.other}/two`);
      const back = (await page.goBack())?.status();
      const forward = (await page.goForward())?.url();
      const reload = (await page.reload())?.status();
      await page.evaluate(`history.pushState(1, '', '/pushed')`);
      const pushed = page.url();
      await page.evaluate(`location.hash = 'x'`);
      await page.waitForURL('**/pushed#x');
      const none = await page.goForward();
      return [
        back,
        forward,
        reload,
        pushed,
        page.url(),
        none,
        await page.evaluate('history.length'),
      ];
    },
  },
  {
    name: 'dialogs: alert, confirm, prompt',
    async run({ page }) {
      const seen: unknown[] = [];
      page.on('dialog', (dialog) => {
        seen.push([dialog.type(), dialog.message(), dialog.defaultValue()]);
        const done = dialog.message() === 'no' ? dialog.dismiss() : dialog.accept('typed');
        done.catch((error: Error) => seen.push(error.message));
      });
      const given = await page.evaluate(
        `[alert('hi'), confirm('yes'), confirm('no'), prompt('what', 'this'), prompt('no')]`,
      );
      return [seen, given];
    },
  },
  {
    name: 'dialogs: beforeunload',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.evaluate(`onbeforeunload = (event) => event.preventDefault()`);
      await page.click('h1');
      const asked = page.waitForEvent('dialog');
      const closing = page.close({ runBeforeUnload: true });
      const dialog = await asked;
      const closed = page.waitForEvent('close');
      await dialog.accept();
      await Promise.all([closing, closed]);
      return [dialog.type(), dialog.message(), page.isClosed()];
    },
  },
  {
    name: 'an iframe of the same site and one of another',
    async run({ page, site }) {
      const facts: unknown[] = [];
      for (const inner of [`${site.url}/two`, `${site.other}/two`]) {
        await page.goto(`${site.url}/frame?of=${inner}`);
        const frame = page.frame('inner');
        await frame?.waitForLoadState();
        facts.push([
          page.frames().map((one) => [one.name(), one.url()]),
          await frame?.title(),
          await page.frameLocator('iframe').locator('h1').textContent(),
          await frame?.evaluate('location.href + origin'),
          frame?.parentFrame() === page.mainFrame(),
        ]);
      }
      await page.evaluate(`document.querySelector('iframe').remove()`);
      return [facts, page.frames().length];
    },
  },
  {
    name: 'frames of srcdoc, about:blank and a sandbox',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.evaluate(`document.body.innerHTML = \`
        <iframe name=doc srcdoc="<h1>doc</h1>"></iframe>
        <iframe name=blank></iframe><iframe name=boxed sandbox src="/two"></iframe>\``);
      await page.frameLocator('[name=boxed]').locator('h1').waitFor();
      const facts: unknown[] = [];
      for (const name of ['doc', 'blank', 'boxed']) {
        const frame = page.frame(name);
        facts.push([frame?.url(), await frame?.evaluate('[origin, document.body.innerText]')]);
      }
      return [facts, await page.frameLocator('[name=doc]').locator('h1').textContent()];
    },
  },
  {
    name: 'console messages, page errors and their locations',
    async run({ page, site }) {
      await page.goto(site.url);
      const seen: unknown[] = [];
      page.on('console', (message) => {
        seen.push([message.type(), message.text(), message.args().length]);
      });
      page.on('pageerror', (error) => seen.push(['pageerror', error.name, error.message]));
      await page.evaluate(`console.log('a', 1, { b: 2 }, [3]); console.error('c');
        console.warn('%s!', 'd'); console.table([[1]]); console.assert(false, 'e')`);
      const thrown = page.waitForEvent('pageerror');
      await page.evaluate(`void setTimeout(() => { throw new TypeError('f') })`);
      await thrown;
      const rejected = page.waitForEvent('pageerror');
      await page.evaluate(`void Promise.reject(new RangeError('g'))`);
      await rejected;
      return seen;
    },
  },
  {
    name: 'exposed functions, bindings and init scripts',
    async run({ context, page, site }) {
      await context.exposeFunction('add', (a: number, b: number) => a + b);
      await page.exposeBinding('where', ({ frame }) => frame.url());
      await page.exposeFunction('fail', () => Promise.reject(new Error('refused')));
      await page.addInitScript('window.early = location.href');
      await page.goto(`${site.url}/frame?of=${site.other}/two`);
      const inner = page.frame('inner');
      return [
        await page.evaluate('add(1, 2)'),
        await inner?.evaluate('where()'),
        await inner?.evaluate('early'),
        await page.evaluate('fail().catch(String)'),
      ];
    },
  },
  {
    name: 'values and errors across evaluate',
    async run({ page }) {
      const values =
        await page.evaluate(`[NaN, -0, 1n, new Date(0), /a/g, [undefined], new Map([[1, 2]]),
        new Set([1]), Symbol.iterator.toString(), new URL('http://a/')].map(String)`);
      const handle = await page.evaluateHandle('({ a: [1], b: document.body })');
      const properties = [...(await handle.getProperties()).keys()];
      const thrown = await page.evaluate(`(() => { throw new Error('x') })()`).catch(reported);
      const syntax = await page.evaluate('(').catch(reported);
      return [values, properties, String(handle), thrown, syntax];
    },
  },
  {
    name: 'a page that closes during an evaluate',
    async run({ page }) {
      const waiting = page.evaluate('new Promise(() => {})').catch(reported);
      await page.close();
      return [await waiting, await page.evaluate('1').catch(reported)];
    },
  },
  {
    name: 'a page that crashes',
    async run({ context, page, site }) {
      await page.goto(site.url);
      const crashed = page.waitForEvent('crash');
      const raw = await context.newCDPSession(page);
      raw.send('Page.crash').catch(() => undefined); // no response follows
      await crashed;
      const after = await page.evaluate('1').catch(reported);
      const other = await context.newPage();
      return [after, (await other.goto(site.url))?.status()];
    },
  },
];
