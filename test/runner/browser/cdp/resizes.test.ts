/** What reports that a page may have another size, over a real connection to a real Chrome. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openPages, type Page } from '../../../../runner/browser/cdp/pages.ts';
import { resizes } from '../../../../runner/browser/cdp/resizes.ts';
import { until } from '../../../support/poll.ts';
import { openRaw } from '../../sessions/relay/raw.ts';
import { type Lab, openLab } from '../lab.ts';

const test = suite('runner/browser/cdp/resizes');
const METRICS = { width: 390, height: 844, deviceScaleFactor: 1, mobile: false };
const FLOOD = 1_000;

/** A lab with a client on its page, and how often a resize of that page was reported. */
async function openBench() {
  const lab = await openLab({ allow: ['127.0.0.1/32'] });
  const pages = await openPages(lab.chrome);
  const client = await openRaw(lab.connectUrl);
  const session = await client.attach();
  const counted = count(lab, must(pages.active, 'a page'));
  return {
    lab,
    pages,
    client,
    session,
    counted,
    async [Symbol.asyncDispose]() {
      client.socket.close();
      await client.closed;
      await lab[Symbol.asyncDispose]();
    },
  };
}

function count(lab: Lab, page: Page) {
  const counted = { times: 0, stop: () => {} };
  counted.stop = resizes(lab.chrome.pipe).on(page, () => {
    counted.times += 1;
  });
  return counted;
}

test('a resize of a page is reported once it is drawn, that of another page is not', async () => {
  await using bench = await openBench();
  const { lab, pages, client, session, counted } = bench;
  await client.call('Target.createTarget', { url: 'about:blank' });
  const other = await until(() => pages.open().find(({ id }) => id === 1));
  const otherCounted = count(lab, other);
  const sized = { windowState: 'normal', width: 900, height: 700 };
  const { windowId } = await client.call('Browser.getWindowForTarget', {}, session);
  let expected = 0;
  for (const [method, params] of [
    ['Emulation.setDeviceMetricsOverride', METRICS],
    ['Emulation.clearDeviceMetricsOverride', {}],
    ['Browser.setWindowBounds', { windowId, bounds: sized }],
    ['Browser.setContentsSize', { windowId, width: 800, height: 600 }],
  ] as const) {
    await client.call(method, params, session);
    expected += 1;
    await until(() => counted.times === expected);
  }
  // what concerns a window is reported for all pages
  await until(() => otherCounted.times === 2);
  await client.call('Emulation.setEmulatedMedia', { media: 'print' }, session);
  counted.stop();
  await client.call('Emulation.setDeviceMetricsOverride', METRICS, session);
  await client.call('Browser.setContentsSize', { windowId, width: 900, height: 600 }, session);
  await until(() => otherCounted.times === 3);
  assert.is(counted.times, expected);
});

test('the end of a session that has set a size is reported, of another one is not', async () => {
  await using bench = await openBench();
  const { client, session, counted } = bench;
  const idle = await client.attach();
  await client.call('Emulation.setDeviceMetricsOverride', METRICS, session);
  await until(() => counted.times === 1);
  await client.call('Target.detachFromTarget', { sessionId: idle });
  await client.call('Target.detachFromTarget', { sessionId: session });
  await until(() => counted.times === 2);
});

test('resizes without a pause are reported, but far fewer times', async () => {
  await using bench = await openBench();
  const { client, session, counted } = bench;
  const method = 'Emulation.setDeviceMetricsOverride';
  for (let index = 1; index < FLOOD; index += 1) {
    const params = { ...METRICS, width: 300 + (index % 9) };
    client.socket.send(JSON.stringify({ id: 1_000 + index, method, params, sessionId: session }));
  }
  // read before the last one is sent: Chrome may answer it after its report
  const before = counted.times;
  await client.call(method, METRICS, session);
  await until(() => counted.times > before);
  assert.ok(counted.times < FLOOD / 10, `${counted.times} times`);
});

test.run();
