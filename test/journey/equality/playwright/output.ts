/** Screenshots, documents, traces, coverage, downloads. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../../../proto/common/must.ts';
import { reported } from '../thing.ts';
import type { PlaywrightThing } from './place.ts';

export const OUTPUT: readonly PlaywrightThing[] = [
  {
    name: 'screenshots: size and colour of a pixel',
    async run({ page }) {
      await page.setContent(
        '<body style="margin: 0; background: rgb(10, 200, 30); height: 2000px">',
      );
      const seen: unknown[] = [];
      for (const options of [
        {},
        { fullPage: true },
        { clip: { x: 5, y: 5, width: 20, height: 10 } },
        { type: 'jpeg', quality: 80 } as const,
      ]) {
        const picture = (await page.screenshot(options)).toString('base64');
        const pixel = await page.evaluate(`(async () => {
          const picture = new Image();
          picture.src = 'data:image/${options.type ?? 'png'};base64,${picture}';
          await picture.decode();
          const canvas = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
          canvas.drawImage(picture, 0, 0);
          return [picture.width, picture.height, ...canvas.getImageData(3, 3, 1, 1).data];
        })()`);
        seen.push(pixel);
      }
      return seen;
    },
  },
  {
    name: 'a screenshot of an element, at scale 2, without background',
    options: { deviceScaleFactor: 2, viewport: { width: 300, height: 200 } },
    async run({ page }) {
      await page.setContent('<b style="display: block; width: 40px; height: 20px">b</b>');
      const element = await page.locator('b').screenshot({ omitBackground: true });
      const whole = await page.screenshot();
      return [element, whole].map((png) => [png.readUInt32BE(16), png.readUInt32BE(20)]);
    },
  },
  {
    name: 'PDF: pages and their size',
    async run({ page, site }) {
      await page.goto(site.url);
      const pdf = await page.pdf({ format: 'A4', printBackground: true, outline: true });
      const text = pdf.toString('latin1');
      return [
        text.slice(0, 5),
        /\/Count (\d+)/.exec(text)?.[1],
        /\/MediaBox \[[^\]]+\]/.exec(text)?.[0],
      ];
    },
  },
  {
    name: 'PDF: margins, ranges, a header, its own page size',
    async run({ page }) {
      await page.setContent(`<style>@page { size: 300px 200px }</style>
        <h1>one</h1><h1 style="break-before: page">two</h1>`);
      const header = { displayHeaderFooter: true, headerTemplate: '<b>x</b>', footerTemplate: '' };
      const documents = [
        await page.pdf({ landscape: true, margin: { top: '1in', left: '2cm' }, scale: 0.5 }),
        await page.pdf({ pageRanges: '2', width: '5in', height: '400px', ...header }),
        await page.pdf({ preferCSSPageSize: true, tagged: true }),
      ];
      return documents.map((bytes) => {
        const text = bytes.toString('latin1');
        return [/\/Count (\d+)/.exec(text)?.[1], /\/MediaBox \[[^\]]+\]/.exec(text)?.[0]];
      });
    },
  },
  {
    name: 'a trace of a context',
    async run({ context, page, site, directory }) {
      await context.tracing.start({ screenshots: true, snapshots: true });
      await page.goto(site.url);
      await page.click('a');
      const path = join(directory, 'trace.zip');
      await context.tracing.stop({ path });
      return [(await readFile(path)).toString('latin1', 0, 2), (await stat(path)).size > 1_000];
    },
  },
  {
    name: 'coverage of scripts and styles',
    async run({ page, site }) {
      await Promise.all([page.coverage.startJSCoverage(), page.coverage.startCSSCoverage()]);
      await page.goto(`${site.url}/styled`);
      const [scripts, styles] = await Promise.all([
        page.coverage.stopJSCoverage(),
        page.coverage.stopCSSCoverage(),
      ]);
      return [
        scripts.map(({ url, functions }) => {
          return [url, functions.map((one) => [one.functionName, one.ranges[0]?.count])];
        }),
        styles.map(({ url, ranges }) => [url, ranges]),
      ];
    },
  },
  {
    name: 'downloads: names, URLs, outcomes',
    async run({ page, site }) {
      await page.goto(site.url);
      await page.setContent('<a href="/file">a</a><a download="b.json" href="/data.json">b</a>');
      const facts: unknown[] = [];
      for (const index of [0, 1]) {
        const started = page.waitForEvent('download');
        await page.locator('a').nth(index).click();
        const download = await started;
        facts.push([download.suggestedFilename(), download.url(), await download.failure()]);
      }
      return facts;
    },
  },
  {
    name: "a download in the driver's own directory",
    async run({ page, site, directory }) {
      await page.goto(site.url);
      await page.setContent('<a href="/file">a</a>');
      const started = page.waitForEvent('download');
      await page.click('a');
      const path = join(directory, 'saved');
      const saving = (await started).saveAs(path).then(() => readFile(path, 'utf8'));
      return await saving.catch((error: Error) => /ENOENT/.exec(error.message)?.[0]);
    },
  },
  {
    name: 'goto of a download',
    async run({ page, site }) {
      const started = page.waitForEvent('download');
      const going = page.goto(`${site.url}/file`).then(() => 'a page', reported);
      return [await going, (await started).suggestedFilename()];
    },
  },
  {
    name: 'a raw CDP session of a page and of the browser',
    async run({ browser, context, page, site }) {
      await page.goto(site.url);
      const raw = await context.newCDPSession(page);
      const { root } = await raw.send('DOM.getDocument');
      const { nodeId } = await raw.send('DOM.querySelector', {
        nodeId: root.nodeId,
        selector: 'h1',
      });
      const { outerHTML } = await raw.send('DOM.getOuterHTML', { nodeId });
      const { nodes } = await raw.send('Accessibility.getFullAXTree');
      const metrics = await raw.send('Page.getLayoutMetrics');
      const unknown = await raw.send('Foo.bar' as 'DOM.enable').catch(reported);
      const whole = await browser.newBrowserCDPSession();
      const { targetInfo } = await raw.send('Target.getTargetInfo');
      const version = await whole.send('Browser.getVersion');
      const mine = await whole.send('Target.getTargets');
      const own = must(
        mine.targetInfos.find((one) => one.targetId === targetInfo.targetId),
        'the target of the page',
      );
      await Promise.all([raw.detach(), whole.detach()]);
      return [
        outerHTML,
        nodes.map((node) => node.role?.value),
        [metrics.cssLayoutViewport, metrics.cssContentSize],
        unknown,
        [version.product, version.protocolVersion, version.jsVersion],
        [own.type, own.url, own.attached, own.canAccessOpener],
        await raw.send('DOM.enable').catch(reported),
      ];
    },
  },
];
