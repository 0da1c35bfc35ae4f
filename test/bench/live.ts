/**
 * `node test/bench/live.ts [seconds]`: the cost and the delay of a live view, with a real Chrome
 * and viewers on this machine. A page that changes at 60 frames a second has no viewer, one and
 * four; CPU is of Chrome's processes and of this one, in seconds a second. Latency is from a
 * viewer's mouse button to the first picture after it. Read the differences.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { must } from '../../proto/common/must.ts';
import { look, openLiveLab, type Viewing } from '../runner/sessions/live-view/viewers.ts';
import { until } from '../support/poll.ts';
import { familyOf } from '../support/service/processes.ts';

const SECONDS = Number(process.argv[2] ?? 4);
const CLICKS = 40;
/** In clock ticks a second, the same on every Linux. */
const TICKS = 100;
const MOVING = `<body style="margin:0;font:40px sans-serif"><script>
  let at = 0;
  (function turn() {
    document.body.style.background = 'hsl(' + at++ % 360 + ' 80% 60%)';
    document.body.textContent = 'frame ' + at;
    requestAnimationFrame(turn);
  })();
</script>`;
const STILL = `<body style="background:white" onmousedown="
  document.body.style.background = 'hsl(' + Math.random() * 360 + ' 80% 60%)'">`;

{
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.setContent(MOVING);
  const viewers: Viewing[] = [];
  for (const wanted of [0, 1, 4]) {
    while (viewers.length < wanted) viewers.push(await look(lab.viewUrl));
    await pause(500);
    await measure(viewers);
  }
  for (const viewing of viewers.splice(1)) viewing.socket.close();
  await page.setContent(STILL);
  const viewing = must(viewers[0], 'a viewer');
  await pause(500);
  const took: number[] = [];
  for (let click = 0; click < CLICKS; click++) took.push(await clickToPicture(viewing));
  took.sort((a, b) => a - b);
  const at = (part: number) => took[Math.floor(part * CLICKS)]?.toFixed(0);
  console.log(`button to picture: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`);
  await browser.close();
}

async function measure(viewers: readonly Viewing[]): Promise<void> {
  const before = { chrome: ticksOfChrome(), own: process.cpuUsage(), at: performance.now() };
  const seen = viewers.map(({ frames }) => frames.length);
  await pause(SECONDS * 1_000);
  const seconds = (performance.now() - before.at) / 1_000;
  const chrome = (ticksOfChrome() - before.chrome) / TICKS / seconds;
  const { user, system } = process.cpuUsage(before.own);
  const own = (user + system) / 1e6 / seconds;
  const [first] = viewers;
  const frames = first ? first.frames.slice(seen[0]) : [];
  const bytes = frames.reduce((sum, frame) => sum + frame.length, 0);
  const shown = `${(frames.length / seconds).toFixed(1)} pictures/s, ${kilo(bytes / seconds)} KB/s`;
  console.log(
    `${viewers.length} viewers: Chrome ${chrome.toFixed(2)}, here ${own.toFixed(3)} CPU; ${shown}`,
  );
}

async function clickToPicture(viewing: Viewing): Promise<number> {
  const before = viewing.frames.length;
  const at = { type: 'mouse', x: 300, y: 300, button: 'left', clicks: 1, modifiers: 0 };
  const startedAt = performance.now();
  viewing.send({ ...at, event: 'down', buttons: 1 });
  await until(() => viewing.frames.length > before, 10_000, 1);
  const took = performance.now() - startedAt;
  viewing.send({ ...at, event: 'up', buttons: 0 });
  await pause(150); // a viewer's pause between two clicks
  return took;
}

/** Of Chrome: all processes that this process has started. */
function ticksOfChrome(): number {
  const others = familyOf(process.pid).filter(({ pid }) => pid !== process.pid);
  return others.reduce((sum, { pid }) => sum + ticks(pid), 0);
}

function ticks(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]); // user and system
  } catch {
    return 0; // it has just ended
  }
}

function kilo(bytes: number): string {
  return (bytes / 1_000).toFixed(0);
}
