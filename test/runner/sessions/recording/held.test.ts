/** The frames of a page that its client pauses while a new window waits. */
import { createHash } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import { attach } from '../../../../runner/browser/cdp/target-session.ts';
import { PageRecorder } from '../../../../runner/sessions/recording/page-recorder.ts';
import { openLab, PATIENT, until } from '../../browser/lab.ts';
import { openRaw } from '../relay/raw.ts';

const test = suite('runner/sessions/recording/held');
/** When the page has loaded and been drawn. */
const DRAWN = `new Promise((done) => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
  if (document.readyState === 'complete') drawn();
  else addEventListener('load', drawn);
})`;

/** When Chrome gives out a page that is held: at once, or when it draws it next. */
for (const [program, isAtOnce] of [
  ['/usr/bin/chromium-headless-shell', true],
  ['/usr/bin/chromium', false],
] as const) {
  test(`no frame has Chrome's message across a paused page: ${program}`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.1/32'], program });
    const client = await openRaw(lab.connectUrl);
    const holding = { autoAttach: true, flatten: true, waitForDebuggerOnStart: true };
    await client.call('Target.setAutoAttach', holding);
    const attachments = () =>
      client.said.filter((text) => text.startsWith('{"method":"Target.attachedToTarget"'));
    const sessionOf = (text = '') => String(JSON.parse(text).params.sessionId);
    const own = sessionOf(attachments()[0]);
    const evaluate = (expression: string) =>
      client.call('Runtime.evaluate', { expression, awaitPromise: true, userGesture: true }, own);
    await client.call('Page.navigate', { url: lab.siteUrl }, own);
    await evaluate(DRAWN);

    const pages = await openPages(lab.chrome);
    const page = must(pages.active, 'a page');
    const frames: string[] = [];
    let starts = 0;
    page.session.on('Page.screencastVisibilityChanged', () => {
      starts += 1;
    });
    const onFrame = ({ jpeg }: { jpeg: Buffer }) => void frames.push(hashOf(jpeg));
    const recorder = new PageRecorder(page, { now: Date.now, onFrame: onFrame });
    pages.onWindow(() => recorder.hold());
    const witness = await watch(lab.chrome.pipe, page.targetId);
    await until(() => frames.length > 0 && witness.length > 0, 'the page as it is');
    const [clean] = witness;

    const opening = evaluate('document.body.style.background = "silver"; void open("/popup")');
    await until(() => !isAtOnce || witness.at(-1) !== clean, 'the dimmed page');
    await until(() => attachments().length > 1, 'the window');
    const held = witness.filter((frame) => frame !== clean);
    const startsBefore = starts;
    await client.call('Runtime.runIfWaitingForDebugger', {}, sessionOf(attachments()[1]));
    await opening;
    await until(() => starts > startsBefore, 'another capture');
    const [given] = await watched(lab.chrome.pipe, page.targetId);
    await client.call('Page.bringToFront', {}, own);
    await evaluate(DRAWN);
    const [now] = await watched(lab.chrome.pipe, page.targetId);
    await until(() => frames.at(-1) === now, 'the page as it is now');
    const dimmed = [...held, given].filter((frame) => frame !== clean && frame !== now);
    assert.equal(
      frames.filter((frame) => dimmed.includes(frame)),
      [],
    );
    recorder.stop();
    client.socket.close();
  });
}

/** The first that a recorder would be given by a capture of its own. */
async function watched(pipe: Pipe, targetId: string): Promise<string[]> {
  const seen = await watch(pipe, targetId);
  await until(() => seen.length > 0, 'a frame');
  return seen;
}

/** What a recorder would be given by a capture of its own, from now on; Chrome's end ends it. */
async function watch(pipe: Pipe, targetId: string): Promise<string[]> {
  const session = await attach(pipe, targetId);
  const seen: string[] = [];
  session.on('Page.screencastFrame', ({ data, sessionId }) => {
    seen.push(hashOf(Buffer.from(String(data), 'base64')));
    session.call('Page.screencastFrameAck', { sessionId }).catch(() => undefined);
  });
  const size = { maxWidth: 1280, maxHeight: 1280 };
  await session.call('Page.startScreencast', { format: 'jpeg', quality: 60, ...size }, PATIENT);
  return seen;
}

function hashOf(jpeg: Buffer): string {
  return createHash('sha256').update(jpeg).digest('hex');
}

test.run();
