/**
 * Tests at the runner's start that Chrome works for sessions: a client on a loopback relay opens a
 * page, evaluates an expression and takes a screenshot of a line of text. A Chrome without a font
 * crashes at the first text.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import CDP from 'chrome-remote-interface';
import type { Log } from '../../proto/common/log.ts';
import type { Chrome } from '../browser/launch.ts';
import { until } from '../common/abort.ts';
import { openRelay } from '../sessions/relay/relay.ts';

const PAGE = 'data:text/html,<title>tabern</title><body bgcolor=white><h1>A line of text</h1>';
/** Polls, because a navigation is answered before the page has its title. */
const EXPRESSION = `new Promise((done) => {
  const look = () => document.title ? done(document.title + innerWidth) : setTimeout(look, 5);
  look();
})`;
/** Counts the dark pixels of a screenshot. Runs in the page, which can decode images. */
const darkPoints = (png: string): string => `(async () => {
  const picture = new Image();
  picture.src = 'data:image/png;base64,${png}';
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
  canvas.drawImage(picture, 0, 0);
  const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
  return data.filter((value, at) => at % 4 === 0 && value < 128).length;
})()`;
/** Ours: the line of text has about 900; a frame or a cursor has fewer. */
const DARK_MIN = 100;
/** Ours: on a busy machine the first frame is late, and a screenshot fails before it. */
const DRAWN_MS = 10_000;
const AGAIN_MS = 50;
/** Ours: the whole test takes half a second; a crashed page does not respond. */
const PROBE_MS = 60_000;

/** Product and version, such as `HeadlessChrome/156.0.8078.79`. Throws when a check fails. */
export async function probeChrome(chrome: Chrome, log: Log): Promise<string> {
  const relay = openRelay(chrome, { log });
  const path = `/${randomUUID()}`; // every user of the machine can connect to loopback
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    if (request.url === path) relay.serve(request, socket, head);
    else socket.destroy();
  });
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const client = await CDP({ target: `ws://127.0.0.1:${port}${path}`, local: true });
    try {
      return await withinLimit((signal) => lookAt(client, signal), client);
    } finally {
      await client.close();
    }
  } finally {
    relay.close(1000, 'probed');
    server.close();
  }
}

async function lookAt(client: CDP.Client, signal: AbortSignal): Promise<string> {
  const { product } = await client.Browser.getVersion();
  const { targetInfos } = await client.Target.getTargets({});
  const page = targetInfos.find(({ type }) => type === 'page');
  if (page === undefined) throw new Error(`${product} has no page`);
  const { targetId } = page;
  const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true });
  await client.send('Page.navigate', { url: PAGE }, sessionId);
  const computed = await evaluate(client, sessionId, EXPRESSION);
  if (!/^tabern\d+$/.test(computed)) throw new Error(`${product} computed ${computed}`);
  const until = performance.now() + DRAWN_MS;
  for (;;) {
    const problem = await drawingProblem(client, sessionId);
    if (problem === undefined) return product;
    if (performance.now() > until) throw new Error(`${product} ${problem}`);
    await pause(AGAIN_MS, undefined, { signal });
  }
}

/** The defect of a screenshot; undefined when it shows the line of text. */
async function drawingProblem(client: CDP.Client, sessionId: string): Promise<string | undefined> {
  let picture: { data: string };
  try {
    picture = await client.send('Page.captureScreenshot', { format: 'png' }, sessionId);
  } catch (error) {
    return `draws nothing: ${(error as Error).message}`;
  }
  const dark = Number(await evaluate(client, sessionId, darkPoints(picture.data)));
  return dark >= DARK_MIN ? undefined : 'draws no text: are there fonts?';
}

/** Rejects when the browser or the page ends: calls of the client would wait forever. */
async function withinLimit<T>(
  act: (signal: AbortSignal) => Promise<T>,
  client: CDP.Client,
): Promise<T> {
  const ended = new AbortController();
  const end = (problem: string) => () => ended.abort(new Error(problem));
  const timer = setTimeout(end('a page did not answer in time'), PROBE_MS);
  client.on('disconnect', end('the browser ended during the test'));
  client.on('Inspector.targetCrashed', end('a page with text crashed'));
  try {
    return await until(act(ended.signal), ended.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function evaluate(
  client: CDP.Client,
  sessionId: string,
  expression: string,
): Promise<string> {
  const params = { expression, awaitPromise: true };
  const { result } = await client.send('Runtime.evaluate', params, sessionId);
  return String(result.value);
}
