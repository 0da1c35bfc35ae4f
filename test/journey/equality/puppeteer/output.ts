/** Screenshots, documents, traces, coverage, downloads. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { PuppeteerThing } from './place.ts';

export const OUTPUT: readonly PuppeteerThing[] = [
  {
    name: 'screenshots: the view, the page, a clip, an element, other formats',
    async run({ page }) {
      await page.setViewport({ width: 300, height: 200, deviceScaleFactor: 2 });
      await page.setContent(`<body style="margin: 0; background: rgb(10, 200, 30); height: 900px">
        <b style="display: block; width: 40px; height: 20px">b</b>`);
      const clip = { x: 5, y: 5, width: 20, height: 10 };
      const element = await (await page.$('b'))?.screenshot({ omitBackground: true });
      const pngs = [
        await page.screenshot(),
        await page.screenshot({ fullPage: true }),
        await page.screenshot({ clip }),
        Buffer.from(element ?? ''),
      ].map((png) => [Buffer.from(png).readUInt32BE(16), Buffer.from(png).readUInt32BE(20)]);
      const jpeg = await page.screenshot({ type: 'jpeg', quality: 50, encoding: 'base64' });
      const webp = Buffer.from(await page.screenshot({ type: 'webp' }));
      return [pngs, jpeg.slice(0, 4), webp.toString('latin1', 8, 12)];
    },
  },
  {
    name: 'PDF: its pages, their size, a header',
    async run({ page }) {
      await page.setContent('<h1>one</h1><h1 style="break-before: page">two</h1>');
      const documents = [
        await page.pdf({ format: 'A4', printBackground: true, tagged: true, outline: true }),
        await page.pdf({ width: '5in', height: '4in', landscape: true, pageRanges: '1' }),
        await page.pdf({ displayHeaderFooter: true, headerTemplate: '<b>x</b>', scale: 0.5 }),
      ];
      return documents.map((bytes) => {
        const text = Buffer.from(bytes).toString('latin1');
        return [/\/Count (\d+)/.exec(text)?.[1], /\/MediaBox \[[^\]]+\]/.exec(text)?.[0]];
      });
    },
  },
  {
    name: 'a trace, metrics and coverage',
    async run({ page, site, directory }) {
      const path = join(directory, 'trace.json');
      await page.tracing.start({ path, screenshots: true });
      await Promise.all([page.coverage.startJSCoverage(), page.coverage.startCSSCoverage()]);
      await page.goto(`${site.url}/styled`);
      const [scripts, styles] = await Promise.all([
        page.coverage.stopJSCoverage(),
        page.coverage.stopCSSCoverage(),
      ]);
      const trace = await page.tracing.stop();
      type Trace = { traceEvents: { name: string; args: { data?: { url?: string } } }[] };
      const { traceEvents } = JSON.parse(await readFile(path, 'utf8')) as Trace;
      const sent = traceEvents.filter(({ name }) => name === 'ResourceSendRequest');
      return [
        [...scripts, ...styles].map(({ url, ranges }) => [url, ranges]),
        sent.map(({ args }) => args.data?.url).filter((url) => url?.startsWith(site.url)),
        (trace?.length ?? 0) > 1_000,
        Object.keys(await page.metrics()).sort(),
      ];
    },
  },
  {
    name: 'a snapshot of accessibility',
    async run({ page }) {
      await page.setContent(`<h2>Head</h2><label>Name <input value=Ada></label>
        <nav aria-label=Main><a href="/x">X</a></nav><button disabled>Go</button>`);
      const text = JSON.stringify(await page.accessibility.snapshot());
      return JSON.parse(text, (key, value) => {
        return ['backendNodeId', 'loaderId'].includes(key) ? undefined : value;
      });
    },
  },
  {
    name: 'a screencast',
    async run({ page }) {
      await page.setViewport({ width: 200, height: 120 });
      await page.setContent('<body style="background: red">');
      const recorder = await page.screencast();
      const parts: Buffer[] = [];
      recorder.on('data', (part: Buffer) => parts.push(part));
      const whole = finished(recorder);
      const begun = once(recorder, 'data'); // with the first frames
      await page.evaluate(`setInterval(() => {
        document.body.style.background = document.body.style.background === 'red' ? 'blue' : 'red';
      }, 50)`);
      await begun;
      await recorder.stop();
      await whole;
      const bytes = Buffer.concat(parts);
      return [bytes.toString('hex', 0, 4), bytes.length > 200];
    },
  },
  {
    name: 'a download: its name, outcome and bytes',
    async run({ browser, context, page, site, directory, downloaded }) {
      const raw = await browser.target().createCDPSession();
      const browserContextId = context.id;
      const behaviour = { behavior: 'allowAndName', downloadPath: directory } as const;
      await raw.send('Browser.setDownloadBehavior', {
        ...behaviour,
        eventsEnabled: true,
        ...(browserContextId && { browserContextId }),
      });
      const begun = new Promise<{ guid: string; suggestedFilename: string; url: string }>(
        (resolve) => raw.once('Browser.downloadWillBegin', resolve),
      );
      const ended = new Promise<{ state: string; receivedBytes: number; totalBytes: number }>(
        (resolve) => {
          raw.on('Browser.downloadProgress', (one) => one.state !== 'inProgress' && resolve(one));
        },
      );
      await page.goto(site.url);
      await page.setContent('<a href="/file">a</a>');
      await page.click('a');
      const { guid, suggestedFilename: name, url } = await begun;
      const { state, receivedBytes, totalBytes } = await ended;
      await raw.detach();
      const text = await downloaded({ path: join(directory, guid), name });
      return [name, url, state, receivedBytes, totalBytes, text];
    },
  },
];
