/** Tabs, history, dialogs, frames, scripts, and messages of pages. */
import { reported } from '../thing.ts';
import type { PuppeteerThing } from './place.ts';

export const PAGES: readonly PuppeteerThing[] = [
  {
    name: 'tabs are opened, listed, brought to the front and closed',
    async run({ context, page, site }) {
      const second = await context.newPage();
      await second.goto(site.url);
      await page.bringToFront();
      const open = (await context.pages()).map((one) => one.url());
      const closed = new Promise((resolve) => second.once('close', resolve));
      await second.close();
      await closed;
      const state = await page.evaluate('document.visibilityState');
      return [open, state, second.isClosed(), (await context.pages()).length];
    },
  },
  {
    name: 'history: goBack, goForward, reload, pushState',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.goto(`${site.other}/two`);
      const back = (await page.goBack())?.status();
      const forward = (await page.goForward())?.url();
      const reload = (await page.reload())?.status();
      await page.evaluate(`history.pushState(1, '', '/pushed')`);
      const none = await page.goForward().catch(reported);
      return [back, forward, reload, page.url(), none, await page.evaluate('history.length')];
    },
  },
  {
    name: 'dialogs: alert, confirm, prompt, beforeunload',
    async run({ page, site }) {
      const seen: unknown[] = [];
      page.on('dialog', (dialog) => {
        seen.push([dialog.type(), dialog.message(), dialog.defaultValue()]);
        const done = dialog.message() === 'no' ? dialog.dismiss() : dialog.accept('typed');
        done.catch((error: Error) => seen.push(error.message));
      });
      await page.goto(site.url);
      const given = await page.evaluate(
        `[alert('hi'), confirm('yes'), confirm('no'), prompt('what', 'this'), prompt('no')]`,
      );
      await page.evaluate('onbeforeunload = (event) => event.preventDefault()');
      await page.click('h1');
      await page.goto(`${site.url}/two`);
      return [seen, given, page.url()];
    },
  },
  {
    name: 'an iframe of the same site and one of another',
    async run({ page, site }) {
      const facts: unknown[] = [];
      for (const inner of [`${site.url}/two`, `${site.other}/two`]) {
        await page.goto(`${site.url}/frame?of=${inner}`);
        const frame = await (await page.waitForSelector('iframe'))?.contentFrame();
        await frame?.waitForSelector('h1');
        facts.push([
          page.frames().map((one) => one.url()),
          await frame?.title(),
          await frame?.$eval('h1', (one) => one.textContent),
          await frame?.evaluate('location.href + origin'),
          frame?.parentFrame() === page.mainFrame(),
        ]);
      }
      const gone = new Promise((resolve) => page.once('framedetached', resolve));
      await page.$eval('iframe', (one) => one.remove());
      await gone;
      return [facts, page.frames().length];
    },
  },
  {
    name: 'console messages and page errors',
    async run({ page, site }) {
      await page.goto(site.url);
      const seen: unknown[] = [];
      page.on('console', (one) => seen.push([one.type(), one.text(), one.args().length]));
      const failed = new Promise<unknown>((resolve) => page.once('pageerror', resolve));
      await page.evaluate(`console.log('a', 1, { b: 2 }); console.error('c'); console.warn('d')`);
      await page.evaluate(`void setTimeout(() => { throw new TypeError('f') })`);
      const error = await failed;
      return [seen, error instanceof Error ? [error.name, error.message] : error];
    },
  },
  {
    name: 'exposed functions and scripts of new documents',
    async run({ page, site }) {
      await page.exposeFunction('add', (a: number, b: number) => a + b);
      await page.exposeFunction('fail', () => Promise.reject(new Error('refused')));
      const early = 'window.early = location.href';
      const { identifier } = await page.evaluateOnNewDocument(early);
      await page.goto(`${site.url}/frame?of=${site.other}/two`);
      const frame = await (await page.waitForSelector('iframe'))?.contentFrame();
      const facts = [
        await page.evaluate('add(1, 2)'),
        await frame?.evaluate('add(3, 4)'),
        await frame?.evaluate('early'),
        await page.evaluate('fail().catch(String)'),
      ];
      await page.removeExposedFunction('add');
      await page.removeScriptToEvaluateOnNewDocument(identifier);
      await page.reload();
      return [facts, await page.evaluate('[typeof add, typeof early]')];
    },
  },
  {
    name: 'waiting: selectors, functions, navigations, responses, timeouts',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.evaluate(`setTimeout(() => {
        document.body.innerHTML += '<b>late</b>';
        window.ready = 7;
      }, 50)`);
      const late = await page.waitForSelector('b', { visible: true });
      const text = await late?.evaluate((one) => one.textContent);
      const ready = await (await page.waitForFunction('window.ready')).jsonValue();
      const [response, navigation] = await Promise.all([
        page.waitForResponse((one) => one.url().endsWith('/two')),
        page.waitForNavigation({ waitUntil: 'networkidle0' }),
        page.click('a'),
      ]);
      return [
        [text, ready],
        [response.status(), navigation?.status()],
        await page.waitForSelector('i', { timeout: 50 }).catch(reported),
        await page.waitForSelector('b', { hidden: true }),
      ];
    },
  },
  {
    name: 'handles, values and errors across evaluate',
    async run({ page }) {
      const handle = await page.evaluateHandle('({ a: [1], b: document.body })');
      const properties = [...(await handle.getProperties()).keys()];
      await handle.dispose();
      return [
        properties,
        await page.evaluate('[[NaN, -0, null], { a: [new Date(0)] }]'),
        await page.evaluate(`(() => { throw new Error('x') })()`).catch(reported),
        await page.evaluate('(').catch(reported),
        await handle.jsonValue().catch(reported),
        await page.evaluate((a: Map<string, number>) => a.size, new Map()).catch(reported),
      ];
    },
  },
  {
    name: 'a page that closes during an evaluate, and one that crashes',
    async run({ context, page, site }) {
      await page.goto(site.url);
      const crashed = new Promise<Error>((resolve) => page.once('error', resolve));
      const raw = await page.createCDPSession();
      raw.send('Page.crash').catch(() => undefined); // no response follows
      const why = reported(await crashed);
      const other = await context.newPage();
      const waiting = other.evaluate('new Promise(() => {})').catch(reported);
      await other.close();
      const after = String(await other.evaluate('1').catch(reported));
      return [why, await waiting, after.replace(/'[0-9A-F]{32}'/, "'<id>'")];
    },
  },
];
