/** Keyboard, mouse, touch, files and locators. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlaywrightThing } from './place.ts';

const FORM = `<!doctype html><form><label>Name <input name=name></label>
  <label><input type=checkbox name=agree> Agree</label>
  <select name=room><option>one<option value=2>two</select>
  <select multiple><option>a<option>b</select><textarea></textarea>
  <button type=button onclick="this.textContent = 'pressed'">Press</button></form>`;
const LISTENER = `window.seen = [];
  for (const type of ['keydown', 'keypress', 'keyup', 'input', 'click', 'dblclick', 'mousedown',
    'contextmenu', 'wheel', 'touchstart', 'touchend', 'pointerdown', 'dragstart', 'drop']) {
    addEventListener(type, (e) => seen.push([type, e.key ?? '', e.code ?? '', e.button ?? '',
      e.detail ?? '', e.pointerType ?? '', e.isTrusted, e.clientX ?? '', e.shiftKey ?? '']));
  }`;

export const INPUT: readonly PlaywrightThing[] = [
  {
    name: 'keyboard: typing, shortcuts, text without keys',
    async run({ page }) {
      await page.setContent(FORM);
      await page.evaluate(LISTENER);
      await page.focus('input');
      await page.keyboard.type('aB!');
      await page.keyboard.press('Shift+ArrowLeft');
      await page.keyboard.press('Backspace');
      await page.keyboard.insertText('日本');
      await page.keyboard.press('ControlOrMeta+a');
      const selection = await page.evaluate('getSelection().toString()');
      return [await page.inputValue('input'), selection, await page.evaluate('seen')];
    },
  },
  {
    name: 'mouse: click, double click, right click, wheel, move',
    async run({ page }) {
      await page.setContent('<body style="height: 5000px; margin: 0"><p>x</p>');
      await page.evaluate(LISTENER);
      await page.mouse.move(50, 60, { steps: 3 });
      await page.mouse.click(50, 60);
      await page.mouse.dblclick(70, 80);
      await page.mouse.click(90, 100, { button: 'right' });
      await page.mouse.wheel(0, 300);
      await page.waitForFunction('scrollY > 0');
      await page.waitForTimeout(300);
      return [await page.evaluate('seen'), await page.evaluate('scrollY')];
    },
  },
  {
    name: 'touch: a tap',
    options: { hasTouch: true },
    async run({ page }) {
      await page.setContent('<body style="height: 500px; margin: 0">');
      await page.evaluate(LISTENER);
      await page.touchscreen.tap(30, 40);
      await page.waitForFunction(`seen.some(([type]) => type === 'click')`);
      return [
        await page.evaluate('seen'),
        await page.evaluate(`[navigator.maxTouchPoints, 'ontouchstart' in window]`),
      ];
    },
  },
  {
    name: 'drag and drop',
    async run({ page }) {
      await page.setContent(
        `<div id=a draggable=true>a</div><div id=b style="height: 50px">b</div>`,
      );
      await page.evaluate(`a.ondragstart = (e) => e.dataTransfer.setData('text/plain', 'carried');
        b.ondragover = (e) => e.preventDefault();
        b.ondrop = (e) => { b.textContent = e.dataTransfer.getData('text/plain') }`);
      await page.dragAndDrop('#a', '#b');
      return await page.textContent('#b');
    },
  },
  {
    name: 'forms: fill, check, select, press, focus',
    async run({ page }) {
      await page.setContent(FORM);
      await page.getByLabel('Name').fill('Ada');
      await page.getByLabel('Agree').check();
      const chosen = await page.selectOption('select >> nth=0', { label: 'two' });
      const several = await page.selectOption('select >> nth=1', ['a', 'b']);
      await page.fill('textarea', 'one\ntwo');
      await page.getByRole('button').click();
      const data = await page.evaluate(`[...new FormData(document.querySelector('form'))]`);
      const focused = await page.evaluate('document.activeElement.tagName');
      return [chosen, several, data, await page.textContent('button'), focused];
    },
  },
  {
    name: 'hover and :focus-visible',
    async run({ page }) {
      await page.setContent(`<style>b:hover { color: rgb(1, 2, 3) }</style>
        <b>b</b><a href="#">a</a>`);
      await page.hover('b');
      const colour = await page.evaluate(`getComputedStyle(document.querySelector('b')).color`);
      await page.keyboard.press('Tab');
      return [colour, await page.evaluate(`document.querySelector('a').matches(':focus-visible')`)];
    },
  },
  {
    name: 'scrolling into view',
    async run({ page }) {
      await page.setContent('<div style="height: 4000px"></div><button>end</button>');
      await page.locator('button').scrollIntoViewIfNeeded();
      const box = await page.locator('button').boundingBox();
      return [await page.evaluate('scrollY > 0'), box, await page.evaluate('innerHeight')];
    },
  },
  {
    name: 'file chooser, one file and several',
    async run({ page, directory }) {
      const [one, two] = [join(directory, 'one.txt'), join(directory, 'two.txt')];
      await Promise.all([writeFile(one, 'first'), writeFile(two, 'second')]);
      await page.setContent('<input type=file multiple>');
      const chosen = page.waitForEvent('filechooser');
      await page.click('input');
      const chooser = await chosen;
      await chooser.setFiles([one, two]);
      const read = `Promise.all([...document.querySelector('input').files]
        .map(async (file) => [file.name, file.type, file.size, await file.text()]))`;
      const fromDisk = await page.evaluate(read);
      const buffer = Buffer.from('made');
      await page.setInputFiles('input', { name: 'made.bin', mimeType: 'text/x', buffer });
      const made = await page.evaluate(read);
      await page.setInputFiles('input', []);
      return [chooser.isMultiple(), fromDisk, made, await page.evaluate(read)];
    },
  },
  {
    name: 'aria snapshot, roles and names',
    async run({ page }) {
      await page.setContent(`${FORM}<nav aria-label=Main><a href="/x">X</a></nav><h2>Head</h2>`);
      return [
        await page.locator('body').ariaSnapshot(),
        await page.getByRole('link', { name: 'X' }).count(),
        await page.getByRole('checkbox', { name: 'Agree', checked: false }).count(),
      ];
    },
  },
  {
    name: 'locators in shadow roots and nested frames',
    async run({ page, site }) {
      await page.goto(`${site.url}/frame?of=${site.other}/frame?of=${site.url}/two`);
      const nested = page.frameLocator('iframe').frameLocator('iframe').locator('h1');
      const text = await nested.textContent();
      await page.evaluate(`document.body.attachShadow({ mode: 'open' }).innerHTML = '<i>deep</i>'`);
      return [text, await page.locator('i').textContent(), await page.locator('xpath=//i').count()];
    },
  },
];
