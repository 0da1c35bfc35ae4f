/** When pictures are taken: with a session that says what Chrome would, and with Chrome. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/must.ts';
import { attach, type TargetSession } from '../../../runner/chrome/attached.ts';
import { openPages, type Page } from '../../../runner/chrome/pages.ts';
import { jpegSize, startRecorder } from '../../../runner/chrome/recorder.ts';
import { openLab, until } from './lab.ts';
import { openRaw } from './raw.ts';

const test = suite('runner/chrome/recorder');
/** When the page has loaded and been drawn. */
const DRAWN = `new Promise((done) => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
  if (document.readyState === 'complete') drawn();
  else addEventListener('load', drawn);
})`;

function openBench() {
  const calls: string[] = [];
  const pictures: string[] = [];
  const closing = Promise.withResolvers<void>();
  const running: PromiseWithResolvers<void>[] = [];
  let listener: ((params: Record<string, unknown>) => void) | undefined;
  let at = 0;
  const session: TargetSession = {
    async call(method) {
      calls.push(method.replace('Page.', '').replace('Screencast', ''));
      if (method === 'Runtime.evaluate') {
        const runs = Promise.withResolvers<void>();
        running.push(runs);
        await runs.promise;
      }
      return {};
    },
    on(_, added) {
      listener = added;
      return () => {
        listener = undefined;
      };
    },
    once: async () => ({}),
  };
  const page = { session, closed: closing.promise } as Page;
  const recorder = startRecorder(page, {
    now: () => at,
    onPicture: ({ jpeg }) => pictures.push(jpeg.toString()),
  });
  const count = (name: string) => calls.filter((call) => call === name).length;
  return {
    ...{ pictures, recorder, count, running, close: closing.resolve },
    /** A picture from Chrome, so long after the last. */
    say(text: string, afterMs = 10) {
      at += afterMs;
      listener?.({ data: Buffer.from(text).toString('base64'), sessionId: 1 });
    },
    called: (name: string, times: number) =>
      until(() => count(name) >= times, `${times} times ${name}`),
  };
}

test('a picture alone is acknowledged, and nothing is asked for after it', async () => {
  const bench = openBench();
  bench.say('one');
  await bench.called('screencastFrameAck', 1);
  bench.say('two', 200);
  await bench.called('screencastFrameAck', 2);
  assert.equal(bench.pictures, ['one', 'two']);
  assert.is(bench.count('start'), 1);
  bench.recorder.stop();
});

test('after several at once the capture begins anew, as Chrome may have dropped one', async () => {
  const bench = openBench();
  for (const text of ['one', 'two', 'three']) bench.say(text);
  await bench.called('start', 2);
  assert.is(bench.count('screencastFrameAck'), 3);
  bench.say('four');
  await bench.called('screencastFrameAck', 4);
  assert.equal(bench.pictures, ['one', 'two', 'three', 'four']);
  bench.recorder.stop();
});

test('a page that draws without end is shot one by one, until two are the same', async () => {
  const bench = openBench();
  for (let index = 0; index < 16; index += 1) bench.say(`picture ${index}`, 100);
  assert.is(bench.count('stop'), 1);
  bench.say('unasked');
  for (const [index, text] of ['a', 'b', 'b', 'b'].entries()) {
    await bench.called('start', index + 2);
    bench.say(text, 250);
  }
  assert.equal(bench.pictures.slice(-2), ['a', 'b']);
  assert.not(bench.pictures.includes('unasked'));
  const stops = bench.count('stop');
  bench.say('live again', 100);
  await bench.called('screencastFrameAck', 1);
  assert.is(bench.pictures.at(-1), 'live again');
  assert.is(bench.count('stop'), stops);
  bench.recorder.stop();
});

test('of a page that its new windows hold no picture is taken until it runs again', async () => {
  const bench = openBench();
  bench.say('one');
  bench.recorder.opened();
  bench.recorder.opened();
  await bench.called('Runtime.evaluate', 2);
  bench.say('dimmed');
  const [first, second] = bench.running;
  first?.resolve();
  await first?.promise;
  bench.say('dimmed still');
  assert.is(bench.count('start'), 1);
  second?.reject(new Error('the answer did not come in time'));
  await bench.called('start', 2);
  bench.say('two');
  await bench.called('screencastFrameAck', 1);
  assert.equal(bench.pictures, ['one', 'two']);
  bench.recorder.stop();
});

test('one that is stopped while its page is held does not begin again', async () => {
  const bench = openBench();
  bench.recorder.opened();
  await bench.called('Runtime.evaluate', 1);
  bench.recorder.stop();
  bench.running[0]?.resolve();
  await bench.running[0]?.promise;
  assert.is(bench.count('start'), 1);
});

test('what Chrome says across a page that waits for its window is in no picture', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const pages = await openPages(lab.chrome);
  const page = must(pages.active, 'a page');
  const client = await openRaw(lab.connectUrl);
  const holding = { autoAttach: true, flatten: true, waitForDebuggerOnStart: true };
  await client.call('Target.setAutoAttach', holding);
  const attachments = () =>
    client.said.filter((text) => text.startsWith('{"method":"Target.attachedToTarget"'));
  const sessionOf = (text = '') => String(JSON.parse(text).params.sessionId);
  const own = sessionOf(attachments()[0]);
  await client.call('Page.navigate', { url: lab.siteUrl }, own);
  await client.call('Runtime.evaluate', { expression: DRAWN, awaitPromise: true }, own);

  const pictures: string[] = [];
  const onPicture = ({ jpeg }: { jpeg: Buffer }) => void pictures.push(jpeg.toString('base64'));
  const recorder = startRecorder(page, { now: Date.now, onPicture });
  pages.onPage(({ openerId }) => openerId === page.targetId && recorder.opened());
  await using witness = await attach(lab.chrome.pipe, page.targetId);
  const seen: string[] = [];
  witness.on('Page.screencastFrame', ({ data }) => seen.push(String(data)));
  await witness.call('Page.startScreencast', { format: 'jpeg' });
  await until(() => pictures.length > 0 && seen.length > 0, 'the page as it is');

  const before = [pictures.length, seen.length];
  const opening = client.call('Runtime.evaluate', { expression: 'void open("/popup")' }, own);
  await until(() => seen.length > Number(before[1]), 'the dimmed page');
  assert.is(pictures.length, before[0]);
  await until(() => attachments().length > 1, 'the window');
  await client.call('Runtime.runIfWaitingForDebugger', {}, sessionOf(attachments()[1]));
  await opening;
  await client.call('Page.bringToFront', {}, own);
  const expression = 'document.body.style.background = "lime"';
  await client.call('Runtime.evaluate', { expression }, own);
  await until(() => pictures.length > Number(before[0]), 'the page as it is now');
  recorder.stop();
  client.socket.close();
});

test('one that is stopped, or whose page is gone, takes nothing more', async () => {
  const bench = openBench();
  bench.say('one');
  bench.recorder.stop();
  bench.say('two');
  assert.equal(bench.pictures, ['one']);
  assert.is(bench.count('stop'), 1);
  const gone = openBench();
  gone.close();
  await gone.called('stop', 1);
  gone.say('two');
  assert.equal(gone.pictures, []);
});

test('the size of a JPEG is read where it stands', () => {
  const head = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 11, 8, 3, 32, 5, 0, 1, 1, 1];
  assert.equal(jpegSize(Buffer.from(head)), { width: 1280, height: 800 });
  for (const wrong of [
    [],
    [1, 2, 3, 4],
    [0xff, 0xd8, 0xff, 0xe0, 0, 9],
    [0xff, 0xd8, 0, 1, 0, 2],
  ]) {
    assert.is(jpegSize(Buffer.from(wrong)), undefined);
  }
});

test.run();
