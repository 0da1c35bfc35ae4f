/** Viewers of a live view: a separate Chrome, and the content of its screen. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { must } from '../../../proto/common/must.ts';
import { openLab } from '../../runner/browser/lab.ts';
import { until } from '../poll.ts';
import type { Stack } from '../service/stack.ts';

/** In milliseconds: the end of a recorded session on a busy machine. */
export const END_LIMIT_MS = 180_000;

export type LiveUrls = { debuggerUrl: string; debuggerFullscreenUrl: string };
export type LiveView = LiveUrls & {
  wsUrl: string;
  pages: (LiveUrls & { id: string; url: string; title: string; faviconUrl: string })[];
};
export type Session = { id: string; status: string; connectUrl: string };

/** A session that a connected client keeps running, and its live view. */
export async function startLive(stack: Stack, json: object = {}) {
  const session = await stack.call<Session>('/v1/sessions', { json });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  return { session, browser, page, view: await liveViewOf(stack, session) };
}

export function liveViewOf(stack: Stack, { id }: { id: string }, query = ''): Promise<LiveView> {
  return stack.call<LiveView>(`/v1/sessions/${id}/debug${query}`);
}

/** The socket that the page of a live view opens. */
export function viewUrlOf({ debuggerUrl }: LiveUrls): string {
  return debuggerUrl.replace(/^http(.*)\/live\?/, 'ws$1/view?');
}

export function paint(page: Page, colour: string): Promise<unknown> {
  return page.evaluate(`document.documentElement.style.background = 'rgb(${colour})'`);
}

/** In a page: ninety different frames. A page without a change may have no recording. */
export const DRAW = `new Promise((done) => {
  let left = 90;
  const draw = () => {
    document.body.style.background = 'rgb(0, 0, ' + left + ')';
    left -= 1;
    if (left > 0) requestAnimationFrame(draw);
    else done();
  };
  draw();
})`;

/** A viewer's browser. */
export async function openPerson(): Promise<AsyncDisposable & { browser: Browser; page: Page }> {
  const lab = await openLab({ allow: ['127.0.0.0/8'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  return {
    browser,
    page,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await lab[Symbol.asyncDispose]();
    },
  };
}

/**
 * The colour in the middle of the screen: `r,g,b`, each rounded to a multiple of 51, because JPEG
 * is lossy.
 */
export async function colourOn(page: Page): Promise<string> {
  const picture = await page.screenshot();
  const code = `(async (text) => {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const { data } = canvas.getImageData(bitmap.width >> 1, bitmap.height >> 1, 1, 1);
    return [...data].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
  })('${picture.toString('base64')}')`;
  return page.evaluate<string>(code);
}

export async function untilShows(page: Page, colour: string): Promise<void> {
  await until(async () => (await colourOn(page)) === colour, 30_000);
}

/**
 * A customer's page of another origin, with this URL in a frame. It records the messages that it
 * receives.
 */
export async function embed(src: string, sandbox: string) {
  const text = `<!doctype html><title>a customer</title><body style="margin:0">
    <script>told = []; addEventListener('message', ({ data }) => told.push(data));</script>
    <iframe sandbox="${sandbox}" src="${src.replaceAll('&', '&amp;')}"
      style="border:0;width:100vw;height:100vh"></iframe>`;
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A TCP connection to the service that the test can cut. */
export async function openLine(target: string) {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createTcpServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
    },
  };
}
