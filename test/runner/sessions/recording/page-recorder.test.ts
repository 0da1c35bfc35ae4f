/** When frames are taken, with a simulated session; held.test.ts has a real Chrome. */
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import type { Page } from '../../../../runner/browser/cdp/pages.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import {
  openTargetSession,
  type TargetSession,
} from '../../../../runner/browser/cdp/target-session.ts';
import { jpegSize, PageRecorder } from '../../../../runner/sessions/recording/page-recorder.ts';
import { until } from '../../../support/poll.ts';

/** Longer than calls of the runner wait for a response by default. */
const LATE_MS = 2_500;
/** Longer than a page that runs is held. */
const BETWEEN_MS = 300;
const WINDOWS_MAX = 100;

const test = suite('runner/sessions/recording/page-recorder');

function openBench() {
  const calls: string[] = [];
  const frames: string[] = [];
  const signals: AbortSignal[] = [];
  const closing = Promise.withResolvers<void>();
  const running: PromiseWithResolvers<void>[] = [];
  const listeners = new Map<string, (params: Record<string, unknown>) => void>();
  let at = 0;
  const session: TargetSession = {
    async call(method, _params, options) {
      calls.push(method.replace('Page.', '').replace('Screencast', ''));
      if (method === 'Page.startScreencast') signals.push(must(options?.signal, 'a signal'));
      if (method === 'Runtime.evaluate') {
        const runs = Promise.withResolvers<void>();
        running.push(runs);
        await runs.promise;
      }
      return {};
    },
    on(method, added) {
      listeners.set(method, added);
      return () => void listeners.delete(method);
    },
    once: async () => ({}),
  };
  const page = { session, closed: closing.promise } as Page;
  const recorder = new PageRecorder(page, {
    now: () => at,
    onFrame: ({ jpeg }) => frames.push(jpeg.toString()),
  });
  const count = (name: string) => calls.filter((call) => call === name).length;
  return {
    frames,
    recorder,
    count,
    running,
    close: closing.resolve,
    /** Of each start: whether it is wanted yet. */
    wanted: () => signals.map(({ aborted }) => !aborted),
    /** A picture from Chrome, so long after the last; the time of its drawing in seconds. */
    say(text: string, afterMs = 10, timestamp?: number) {
      at += afterMs;
      const data = Buffer.from(text).toString('base64');
      const metadata = { timestamp: timestamp ?? at / 1_000 };
      listeners.get('Page.screencastFrame')?.({ data, sessionId: 1, metadata });
    },
    see(visible: boolean) {
      listeners.get('Page.screencastVisibilityChanged')?.({ visible });
    },
    called: (name: string, times: number) => until(() => count(name) >= times),
  };
}

test('a capture that Chrome refuses after seconds starts again', async () => {
  let receive: (raw: Buffer) => void = () => undefined;
  let starts = 0;
  let lastId = 0;
  const pipe: Pick<Pipe, 'claim' | 'write' | 'release' | 'newId' | 'onUnknownSession'> = {
    newId: () => ++lastId,
    onUnknownSession: () => () => undefined,
    claim: (_, listener) => {
      receive = listener;
    },
    write(message) {
      const { id, method } = JSON.parse(String(message)) as { id: number; method: string };
      const isRefused = method === 'Page.startScreencast' && ++starts === 1;
      const error = { message: 'Not attached to an active page' };
      const said = Buffer.from(JSON.stringify(isRefused ? { id, error } : { id, result: {} }));
      setTimeout(() => receive(said), isRefused ? LATE_MS : 0);
      return true;
    },
    release: () => undefined,
  };
  const session = openTargetSession(pipe as Pipe, 'session');
  const page: Partial<Page> = { session, closed: new Promise(() => undefined) };
  const recorder = new PageRecorder(page as Page, { now: () => 0, onFrame: () => undefined });
  await until(() => starts === 2);
  recorder.stop();
  session.end();
});

test('a single frame is acknowledged, without a restart of the capture', async () => {
  const bench = openBench();
  bench.say('one');
  await bench.called('screencastFrameAck', 1);
  bench.say('two', 200);
  await bench.called('screencastFrameAck', 2);
  assert.equal(bench.frames, ['one', 'two']);
  assert.is(bench.count('start'), 1);
  bench.recorder.stop();
});

test('a page that draws often is captured in single frames until two are equal', async () => {
  const bench = openBench();
  for (const text of ['one', 'two', 'unasked']) bench.say(text);
  assert.is(bench.count('stop'), 1);
  for (const [index, text] of ['three', 'four', 'four'].entries()) {
    await bench.called('start', index + 2);
    bench.say(text, 100);
  }
  assert.is(bench.count('stop'), 3);
  bench.say('live again', 100);
  assert.equal(bench.frames, ['one', 'two', 'three', 'four', 'live again']);
  assert.is(bench.count('screencastFrameAck'), 3); // of one, of the second four, and of the last
  assert.is(bench.count('stop'), 3);
  assert.is(bench.count('start'), 4);
  bench.recorder.stop();
});

test('a page draws often when two frames were drawn, or arrive, within 100 ms', async () => {
  const drawnAt = [
    { afterMs: 500, second: 1.02 },
    { afterMs: 10, second: 500 },
    { afterMs: 10, second: Number.NaN },
  ];
  for (const { afterMs, second } of drawnAt) {
    const bench = openBench();
    bench.say('one', 0, 1);
    bench.say('two', afterMs, second);
    assert.is(bench.count('stop'), 1, `${afterMs} ms, ${second}`);
    bench.recorder.stop();
  }
});

test('a page that draws without end is captured less often', async () => {
  const bench = openBench();
  for (let index = 0; index < 16; index += 1) {
    bench.recorder.resized(); // starts the capture at once
    bench.say(`picture ${index}`);
  }
  const before = performance.now();
  await bench.called('start', 18);
  assert.ok(performance.now() - before > 240, 'a start before 250 ms');
  bench.recorder.stop();
});

test('a resize restarts the capture, also of a page that draws often', async () => {
  const bench = openBench();
  bench.recorder.resized();
  assert.is(bench.count('start'), 2);
  for (const text of ['one', 'two']) bench.say(text);
  await bench.called('start', 3); // of which Chrome sends no frame
  bench.recorder.resized();
  assert.is(bench.count('start'), 4);
  bench.say('resized');
  assert.is(bench.frames.at(-1), 'resized');
  await bench.called('start', 5);
  bench.recorder.stop();
  bench.recorder.resized();
  assert.is(bench.count('start'), 5);
});

test('a resize does not end the pause of a new window', async () => {
  const bench = openBench();
  bench.recorder.hold();
  await bench.called('Runtime.evaluate', 1);
  bench.recorder.resized();
  assert.is(bench.count('start'), 1);
  bench.running[0]?.resolve();
  await bench.called('start', 2);
  bench.recorder.stop();
});

test('a page that a new window pauses gives no frame until it runs again', async () => {
  const bench = openBench();
  bench.say('one');
  bench.recorder.hold();
  bench.recorder.hold();
  await bench.called('Runtime.evaluate', 2);
  bench.say('dimmed');
  const [first, second] = bench.running;
  first?.resolve();
  await first?.promise;
  bench.say('dimmed still');
  assert.is(bench.count('start'), 1);
  second?.reject(new Error('the answer did not come in time'));
  await bench.called('start', 2);
  bench.see(true);
  bench.say('two');
  await bench.called('screencastFrameAck', 1);
  assert.equal(bench.frames, ['one', 'two']);
  bench.recorder.stop();
});

test('windows without end take frames for a time only, and a later one does again', async () => {
  const bench = openBench();
  const run = () => {
    for (const { resolve } of bench.running) resolve();
  };
  let opened = 0;
  const open = (): string => {
    opened += 1;
    const text = `picture ${opened}`;
    bench.recorder.hold();
    bench.say(text, 1_000);
    return text;
  };
  const isShown = () => {
    open();
    run();
    return bench.frames.length > 0;
  };
  await until(isShown, 20_000);
  run();
  await sleep(BETWEEN_MS);
  for (let isHeld = false; !isHeld && opened < WINDOWS_MAX; ) {
    isHeld = !bench.frames.includes(open());
    await until(() => bench.running.length >= opened);
    run();
    await sleep(BETWEEN_MS);
    if (opened === WINDOWS_MAX) assert.unreachable('no later window takes a frame');
  }
  bench.recorder.stop();
});

test('a page that runs between its windows gives frames, too', async () => {
  const bench = openBench();
  let opened = 0;
  while (bench.frames.length === 0 && opened < WINDOWS_MAX) {
    const starts = bench.count('start');
    bench.recorder.hold();
    opened += 1;
    bench.say(`picture ${opened}`, 1_000);
    await until(() => bench.running.length >= opened);
    for (const { resolve } of bench.running) resolve();
    if (bench.frames.length === 0) await bench.called('start', starts + 1);
  }
  assert.ok(opened < WINDOWS_MAX, 'no frame');
  assert.ok(opened > 5, `only ${opened - 1} windows took a frame`);
  bench.recorder.stop();
});

test('a covered page gives no frame until it is visible and drawn', async () => {
  const bench = openBench();
  bench.see(false);
  bench.say('one that was never held');
  bench.recorder.hold();
  await bench.called('Runtime.evaluate', 1);
  bench.running[0]?.resolve();
  await bench.called('start', 2);
  bench.see(false);
  bench.say('dimmed');
  bench.see(true);
  await bench.called('Runtime.evaluate', 2);
  bench.say('dimmed still');
  assert.is(bench.count('start'), 2);
  bench.running[1]?.resolve();
  await bench.called('start', 3);
  bench.see(true);
  bench.say('two');
  assert.equal(bench.frames, ['one that was never held', 'two']);
  bench.recorder.stop();
});

test('a pending start is cancelled when the capture stops', async () => {
  const bench = openBench();
  assert.equal(bench.wanted(), [true]);
  bench.recorder.hold();
  assert.equal(bench.wanted(), [false]);
  bench.running[0]?.resolve();
  await bench.called('start', 2);
  assert.equal(bench.wanted(), [false, true]);
  for (const text of ['one', 'two', 'three']) bench.say(text);
  await bench.called('start', 3);
  assert.equal(bench.wanted(), [false, false, true]);
  bench.recorder.stop();
  assert.equal(bench.wanted(), [false, false, false]);
});

test('a recorder stopped during a pause does not start again', async () => {
  const bench = openBench();
  bench.recorder.hold();
  await bench.called('Runtime.evaluate', 1);
  bench.recorder.stop();
  bench.running[0]?.resolve();
  await bench.running[0]?.promise;
  assert.is(bench.count('start'), 1);
});

test('a stopped recorder takes no frame, nor one whose page has closed', async () => {
  const bench = openBench();
  bench.say('one');
  bench.recorder.stop();
  bench.say('two');
  assert.equal(bench.frames, ['one']);
  assert.is(bench.count('stop'), 1);
  const gone = openBench();
  gone.close();
  await gone.called('stop', 1);
  gone.say('two');
  assert.equal(gone.frames, []);
});

test('the size of a JPEG is read from its header', () => {
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
