/** The live view of a real Chrome: it shows the page, and applies the viewer's input. */
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { attach } from '../../../../runner/browser/cdp/target-session.ts';
import { until } from '../../../support/poll.ts';
import { LIMIT_MS, look, NOW, openLiveLab, untilSees, type Viewing } from './viewers.ts';

const test = suite('runner/sessions/live-view/live-view');

const RED = '255,0,0';
const BLUE = '0,0,255';
const LIME = '0,255,0';
/** Without a restart of the capture one in ten is not shown. */
const RESIZES = 30;
/** Without such a restart every second one is not shown. */
const ROWS = 10;

function firstPage(browser: Browser): Page {
  return must(browser.contexts()[0]?.pages()[0], 'the default page');
}

function paint(page: Page, colour: string): Promise<unknown> {
  return page.evaluate(`document.documentElement.style.background = 'rgb(${colour})'`);
}

function click(viewing: Viewing, x: number, y: number): void {
  const at = { type: 'mouse', x, y, modifiers: 0 };
  viewing.send({ ...at, event: 'move', button: 'none', buttons: 0, clicks: 0 });
  viewing.send({ ...at, event: 'down', button: 'left', buttons: 1, clicks: 1 });
  viewing.send({ ...at, event: 'up', button: 'left', buttons: 0, clicks: 1 });
}

function press(viewing: Viewing, key: string, text = key): void {
  const keyCode = key.toUpperCase().charCodeAt(0);
  const one = { type: 'key', key, code: `Key${key.toUpperCase()}`, keyCode, location: 0 };
  viewing.send({ ...one, event: 'down', text, modifiers: 0 });
  viewing.send({ ...one, event: 'up', text: '', modifiers: 0 });
}

test('a static page is shown at once, to each viewer', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await paint(page, RED);
  const one = await look(lab.viewUrl);
  await untilSees(one, page, RED);
  assert.equal(one.size, { width: 1280, height: 800 });
  const two = await look(lab.viewUrl); // shares the screencast, which has nothing new
  await untilSees(two, page, RED);
  await paint(page, BLUE);
  await Promise.all([untilSees(one, page, BLUE), untilSees(two, page, BLUE)]);
  assert.is(lab.live.viewers, 2);
  one.socket.close();
  two.socket.close();
  await until(() => lab.live.viewers === 0, LIMIT_MS);
  await browser.close();
});

test('a page that is painted right after a resize is shown', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  const viewing = await look(lab.viewUrl);
  const sizes = [
    { width: 390, height: 844 },
    { width: 1280, height: 800 },
  ];
  for (let index = 0; index < RESIZES; index += 1) {
    const size = must(sizes[index % 2], 'a size');
    const colour = must([RED, BLUE, LIME][index % 3], 'a colour');
    await page.setViewportSize(size);
    await paint(page, colour);
    await untilSees(viewing, page, colour);
    assert.equal(viewing.size, size);
  }
  viewing.socket.close();
  await browser.close();
});

test('the last of many pictures in a row is shown', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  const viewing = await look(lab.viewUrl);
  for (let index = 0; index < ROWS; index += 1) {
    const colour = index % 2 === 0 ? BLUE : RED;
    await page.evaluate(`new Promise((done) => {
      let times = 0;
      const step = () => {
        times += 1;
        const colour = times < 8 ? '0,' + times * 30 + ',0' : '${colour}';
        document.documentElement.style.background = 'rgb(' + colour + ')';
        requestAnimationFrame(times < 8 ? step : done);
      };
      step();
    })`);
    await untilSees(viewing, page, colour);
  }
  viewing.socket.close();
  await browser.close();
});

test('clicks, keys, pasted text, wheel and touches reach the page', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await page.setContent(`<body style="margin:0;height:5000px">
    <input style="position:fixed;top:0;left:0;width:200px;height:40px">
    <button style="position:fixed;top:100px;left:0;width:200px;height:40px"
      onclick="document.title = 'clicked ' + ++times">press</button>
    <script>let times = 0</script>`);
  const viewing = await look(lab.viewUrl);
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  const title = (expected: string) =>
    until(async () => (await page.title()) === expected, LIMIT_MS);

  click(viewing, 50, 120);
  await title('clicked 1');
  await until(() => viewing.tabs[0]?.title === 'clicked 1', LIMIT_MS);
  click(viewing, 50, 20);
  for (const key of 'hi') press(viewing, key);
  viewing.send({ type: 'text', text: ' you' });
  await until(async () => (await page.inputValue('input')) === 'hi you', LIMIT_MS);
  viewing.send({ type: 'wheel', x: 400, y: 400, deltaX: 0, deltaY: 300, modifiers: 0 });
  await until(async () => (await page.evaluate('scrollY')) === 300, LIMIT_MS);
  const points = [{ x: 50, y: 120, id: 0 }];
  viewing.send({ type: 'touch', event: 'start', points, modifiers: 0 });
  viewing.send({ type: 'touch', event: 'end', points: [], modifiers: 0 });
  await title('clicked 2'); // a tap
  await browser.close();
});

test('the view follows the active tab, and returns when that tab closes', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await paint(page, RED);
  const viewing = await look(lab.viewUrl);
  await untilSees(viewing, page, RED);
  const second = await must(browser.contexts()[0], 'a context').newPage();
  await paint(second, BLUE);
  await untilSees(viewing, page, BLUE);
  await until(() => viewing.tabs.length === 2 && viewing.tabs[1]?.isShown, LIMIT_MS);
  const first = must(viewing.tabs[0], 'the first tab');
  viewing.send({ type: 'tab', id: first.id });
  await untilSees(viewing, page, RED);
  viewing.send({ type: 'tab', id: must(viewing.tabs[1], 'the second tab').id });
  await untilSees(viewing, page, BLUE);
  await second.close();
  await untilSees(viewing, page, RED);
  await until(() => viewing.tabs.length === 1, LIMIT_MS);
  await browser.close();
});

test('a view can show one tab, also a covered one, and ends with it', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await paint(page, RED);
  const any = await look(lab.viewUrl);
  const { id } = await until(() => any.tabs[0], LIMIT_MS);
  const second = await must(browser.contexts()[0], 'a context').newPage();
  const viewing = await look(`${lab.viewUrl}?target=${id}`);
  await untilSees(viewing, second, RED);
  await paint(page, LIME);
  await untilSees(viewing, second, LIME);
  assert.is(viewing.tabs.length, 1);
  await page.close();
  assert.equal(await viewing.closed, { code: 1000, reason: 'the tab was closed' });
  const nobody = await look(`${lab.viewUrl}?target=none`);
  assert.is((await nobody.closed).code, 1000);
  await browser.close();
});

test('the address bar opens the URLs that a client may open', async () => {
  await using lab = await openLiveLab();
  const viewing = await look(lab.viewUrl);
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  for (const url of ['file:///etc/passwd', 'chrome://version', 'javascript:alert(1)', 'nothing']) {
    const before = viewing.notices.length;
    viewing.send({ type: 'navigate', url });
    await until(() => viewing.notices.length > before, LIMIT_MS);
  }
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/one` });
  await until(() => viewing.tabs[0]?.url.endsWith('/one'), LIMIT_MS);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/two` });
  await until(() => viewing.tabs[0]?.url.endsWith('/two'), LIMIT_MS);
  viewing.send({ type: 'history', by: -1 });
  await until(() => viewing.tabs[0]?.url.endsWith('/one'), LIMIT_MS);
  const before = lab.asked.length;
  viewing.send({ type: 'reload' });
  await until(() => lab.asked.length > before, LIMIT_MS);
});

test('a viewer closes a dialog that no client handles', async () => {
  await using lab = await openLiveLab();
  const viewing = await look(lab.viewUrl);
  const [{ targetId }] = (await lab.chrome.pipe.call('Target.getTargets'))['targetInfos'] as [
    { targetId: string },
  ];
  await using page = await attach(lab.chrome.pipe, targetId);
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  await page.call('Runtime.evaluate', {
    expression: 'setTimeout(() => (told = prompt("?", "x")))',
  });
  await until(() => viewing.dialog !== null, LIMIT_MS);
  assert.equal(viewing.dialog, { kind: 'prompt', message: '?', text: 'x' });
  const other = await look(lab.viewUrl); // comes while it waits
  await until(() => other.dialog !== null, LIMIT_MS);
  const move = {
    type: 'mouse',
    event: 'move',
    button: 'none',
    buttons: 0,
    clicks: 0,
    modifiers: 0,
  };
  for (let x = 0; x < 150; x++) viewing.send({ ...move, x, y: 0 }); // all of it waits, too
  viewing.send({ type: 'dialog', accept: true, text: 'the answer' });
  await until(() => viewing.dialog === null && other.dialog === null, LIMIT_MS);
  const { result } = await page.call('Runtime.evaluate', { expression: 'told' });
  assert.is((result as { value: string }).value, 'the answer');
});

test('a read-only viewer changes nothing', async () => {
  await using lab = await openLiveLab();
  const viewing = await look(`${lab.viewUrl}?readonly=true`);
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/readonly` });
  const other = await look(lab.viewUrl);
  await until(() => other.frames.length > 0, LIMIT_MS);
  other.send({ type: 'navigate', url: `${lab.siteUrl}/other` });
  await until(() => viewing.tabs[0]?.url.endsWith('/other'), LIMIT_MS);
  assert.not(lab.asked.includes('/readonly'));
});

test('viewers know while another one may take input', async () => {
  await using lab = await openLiveLab();
  const watching = await look(`${lab.viewUrl}?readonly=true`);
  const second = await look(`${lab.viewUrl}?readonly=true`);
  const taking = await look(lab.viewUrl);
  await until(() => watching.isControlled && second.isControlled, LIMIT_MS);
  assert.is(taking.isControlled, false, 'itself does not count');
  const rival = await look(lab.viewUrl);
  await until(() => taking.isControlled && rival.isControlled, LIMIT_MS);
  taking.socket.close();
  await until(() => !rival.isControlled, LIMIT_MS);
  assert.is(watching.isControlled, true, 'the rival still may');
  rival.socket.close();
  await until(() => !watching.isControlled && !second.isControlled, LIMIT_MS);
});

test('a viewer gets 15 frames a second; without acknowledgements two', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  const slow = await look(lab.viewUrl);
  slow.acks = false;
  const quick = await look(lab.viewUrl);
  const turn = `setInterval(() => {
    document.documentElement.style.background = 'hsl(' + Math.random() * 360 + ' 90% 50%)';
  }, 5)`;
  await page.evaluate(turn);
  const startedAt = performance.now();
  const before = quick.frames.length;
  await until(() => quick.frames.length > before + 30, LIMIT_MS);
  const perSecond = (quick.frames.length - before) / ((performance.now() - startedAt) / 1_000);
  assert.ok(perSecond < 15 * 1.2, `${perSecond}`); // two were on their way
  assert.ok(slow.frames.length <= 2 + 1, `${slow.frames.length}`); // one may have been acknowledged
  await browser.close();
});

test('an invalid message or a flood ends that viewer only', async () => {
  await using lab = await openLiveLab();
  const good = await look(lab.viewUrl);
  const junk = [
    ...['', 'null', '[]', '{}', '{"type":"constructor"}', '{"type":"mouse"}', '{"type":"key"}'],
    '{"type":"mouse","event":"move","x":1e999,"y":0,"button":"none","buttons":0,"clicks":0}',
    '{"type":"navigate","url":{}}',
    Buffer.from([1, 2, 3]),
  ];
  for (const message of junk) {
    const bad = await look(lab.viewUrl);
    bad.socket.send(message);
    assert.is((await bad.closed).code, 1008, String(message));
  }
  const flood = await look(lab.viewUrl);
  for (let sent = 0; sent < 5_000; sent++) flood.send({ type: 'ack' });
  assert.equal(await flood.closed, { code: 1008, reason: 'too many messages' });
  const large = await look(lab.viewUrl);
  large.socket.send('x'.repeat(2 << 20));
  assert.is((await large.closed).code, 1009);
  const before = good.frames.length;
  good.send({ type: 'navigate', url: `data:text/html,<body style="background:red">` });
  await until(() => good.frames.length > before, LIMIT_MS);
});

test('a view ends at its expiry, and with its session', async () => {
  await using lab = await openLiveLab();
  const expired = await look(`${lab.viewUrl}?until=${NOW + 1}`);
  assert.equal(await expired.closed, { code: 1008, reason: 'the live view has expired' });
  const viewing = await look(`${lab.viewUrl}?until=${NOW + 3_600_000}`);
  await lab.live.close();
  assert.equal(await viewing.closed, { code: 1001, reason: 'the session has ended' });
  const late = await look(lab.viewUrl).catch(String);
  assert.match(String(late), /410/);
});

test.run();
