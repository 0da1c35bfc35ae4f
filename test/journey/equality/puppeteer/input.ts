/** Keyboard, mouse, touch, files, locators and selectors. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reported } from '../thing.ts';
import type { PuppeteerThing } from './place.ts';

const LISTENER = `window.seen = [];
  for (const type of ['keydown', 'keyup', 'input', 'click', 'dblclick', 'contextmenu', 'wheel',
    'touchstart', 'touchmove', 'touchend', 'pointerdown']) {
    addEventListener(type, (e) => seen.push([type, e.key ?? '', e.button ?? '', e.detail ?? '',
      e.pointerType ?? '', e.isTrusted, e.clientX ?? '', e.shiftKey ?? '']));
  }`;

export const INPUT: readonly PuppeteerThing[] = [
  {
    name: 'keyboard, mouse and touch',
    async run({ page }) {
      await page.setContent('<body style="height: 3000px; margin: 0"><input>');
      await page.evaluate(LISTENER);
      await page.type('input', 'aB!');
      await page.keyboard.press('ArrowLeft');
      await page.keyboard.sendCharacter('日本');
      await page.mouse.click(50, 160, { count: 2 });
      await page.mouse.click(50, 160, { button: 'right' });
      await page.touchscreen.tap(60, 170);
      await page.mouse.wheel({ deltaY: 300 });
      await page.waitForFunction('scrollY === 300');
      return [await page.$eval('input', (one) => one.value), await page.evaluate('seen')];
    },
  },
  {
    name: 'drag and drop',
    async run({ page }) {
      await page.setContent(
        '<div id=a draggable=true>a</div><div id=b style="height: 50px">b</div>',
      );
      await page.evaluate(`a.ondragstart = (e) => e.dataTransfer.setData('text/plain', 'carried');
        b.ondragover = (e) => e.preventDefault();
        b.ondrop = (e) => { b.textContent = e.dataTransfer.getData('text/plain') }`);
      const [from, to] = [await page.$('#a'), await page.$('#b')];
      if (from && to) await from.drop(to).catch(reported);
      if (from && to) await to.drop(from);
      await page.waitForFunction(`b.textContent === 'carried'`);
      return await page.$eval('#b', (one) => one.textContent);
    },
  },
  {
    name: 'locators: fill, click, hover, filter, map, scroll',
    async run({ page }) {
      await page.setContent(`<input name=n><button onclick="this.textContent = 'pressed'">go
        </button><select><option>one<option>two</select><i>a</i><i>b</i>
        <div style="height: 80px; overflow: auto"><p style="height: 900px">x</p></div>`);
      await page.locator('input').fill('Ada');
      await page.locator('select').fill('two');
      await page.locator('button').click();
      await page.locator('i').hover();
      await page.locator('div').scroll({ scrollTop: 100 });
      const filtered = page.locator('i').filter((one) => one.textContent === 'a');
      return [
        await page.$eval('input', (one) => one.value),
        await page.$eval('select', (one) => one.value),
        await page.$eval('button', (one) => one.textContent),
        await filtered.map((one) => one.textContent).wait(),
        await page.$eval('div', (one) => one.scrollTop),
        await page.locator('u').setTimeout(100).click().catch(reported),
      ];
    },
  },
  {
    name: 'selectors: aria, text, xpath, shadow roots',
    async run({ page }) {
      await page.setContent('<button aria-label=Send>x</button><p>some <b>text</b></p><main>');
      await page.evaluate(`document.querySelector('main').attachShadow({ mode: 'open' })
        .innerHTML = '<i>deep</i>'`);
      const found: unknown[] = [];
      for (const selector of [
        ...['aria/Send', 'text/text', 'xpath///p/b', 'main >>> i', 'pierce/i', '::-p-text(some)'],
      ]) {
        found.push(await page.$$eval(selector, (all) => all.map((one) => one.tagName)));
      }
      return found;
    },
  },
  {
    name: "a file of the driver's machine, by a file chooser",
    async run({ page, directory }) {
      const path = join(directory, 'one.txt');
      await writeFile(path, 'first');
      await page.setContent('<input type=file>');
      const [chooser] = await Promise.all([page.waitForFileChooser(), page.click('input')]);
      const accepted = await chooser.accept([path]).then(() => 'accepted', reported);
      const read = `Promise.all([...document.querySelector('input').files]
        .map(async (file) => [file.name, file.size, await file.text()]))`;
      return [chooser.isMultiple(), accepted, await page.evaluate(read)];
    },
  },
];
