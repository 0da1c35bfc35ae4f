/**
 * `node test/support/write-pictures.ts`: the pictures of README.md. They show a real service: the
 * live view of a session that has the guide open, and two pages of the console.
 */
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type FrameLocator, type Page } from 'playwright-core';
import { must } from '../../proto/common/must.ts';
import { ended, invoke, publish } from './clients/functions.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';
import { boot, type Stack } from './service/stack.ts';

const DOCS = new URL('../../gateway/web/docs/', import.meta.url);
const SIZE = { width: 1280, height: 860 };
const LIVE_SIZE = { width: 1280, height: 780 };
/** Of JPEG: each picture is below 150 kB. */
const QUALITY = 70;
/** The site that the sessions of the console's pictures visit. */
const SHOP = `<!doctype html><title>Tea shop</title>
<style>
  body { font: 20px sans-serif; margin: 40px; color: #223 }
  li { margin: 12px 0 } button { font: inherit; padding: 8px 16px }
</style>
<h1>Tea shop</h1>
<ul><li>Assam, 100 g: 6.20<li>Darjeeling, 100 g: 8.40<li>Sencha, 100 g: 7.10</ul>
<button>Add to the basket</button>
<script>
  console.info('basket is empty');
  document.querySelector('button').onclick = () => fetch('/basket', { method: 'POST' })
    .then(async (answer) => console.error('the basket answered ' + await answer.text()));
</script>`;

type Session = { id: string; connectUrl: string };

await using stack = await boot();
const viewer = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
await pictureOfLiveView(stack, viewer);
await picturesOfConsole(stack, viewer);
await viewer.close();

/** A page of a remote browser, with tabs and an address bar. */
async function pictureOfLiveView({ url, call }: Stack, viewer: Browser): Promise<void> {
  const json = { browserSettings: { viewport: LIVE_SIZE } };
  const { id, connectUrl } = await call<Session>('/v1/sessions', { json });
  const session = await chromium.connectOverCDP(connectUrl);
  await pageOf(session).goto(`${url}/docs`);
  const view = await call<{ debuggerUrl: string }>(`/v1/sessions/${id}/debug`);
  const person = await viewer.newPage({ viewport: SIZE });
  await person.goto(view.debuggerUrl);
  await isPainted(person);
  await write(person, 'live-view');
  await session.close();
}

/** The overview, and a session whose request has failed. */
async function picturesOfConsole({ url, apiKey, ...stack }: Stack, viewer: Browser): Promise<void> {
  const site = createServer((request, response) => {
    response.statusCode = request.method === 'POST' ? 503 : 200;
    response.setHeader('content-type', 'text/html').end(request.method === 'GET' ? SHOP : 'closed');
  });
  const port = await freePort();
  site.listen(port, '127.0.0.1');
  await runs({ url, apiKey, ...stack });
  const json = { keepAlive: true, userMetadata: { customer: 'acme', order: '4711' } };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
  const session = await chromium.connectOverCDP(connectUrl);
  await pageOf(session).goto(`http://127.0.0.1:${port}/`);
  await pageOf(session).getByRole('button').click();

  const person = await viewer.newPage({ viewport: SIZE, colorScheme: 'dark' });
  await person.goto(`${url}/console`);
  await person.getByLabel('API key').fill(apiKey);
  await person.keyboard.press('Enter');
  await person.getByText('the shop is closed').waitFor();
  await write(person, 'console-overview');
  await person.goto(`${url}/console/p/${stack.projectId}/sessions/${id}?tab=net`);
  await isPainted(person.frameLocator('iframe'));
  await person.getByText('503').first().click();
  await write(person, 'console-session');
  await session.close();
  site.close();
}

/** Two functions, one of which fails. */
async function runs(stack: Stack): Promise<void> {
  const ids = await publish(stack, {
    'package.json': '{"name": "shop", "version": "1.0.0", "type": "module"}',
    'index.ts': `import { defineFn } from 'tabern';
defineFn('prices', async () => ({ assam: 6.2, darjeeling: 8.4 }));
defineFn('order', async () => { throw new Error('the shop is closed'); });`,
  });
  for (const name of ['prices', 'prices', 'order', 'prices']) {
    const { id } = await invoke(stack, must(ids[name], name));
    await ended(stack, id);
  }
}

function pageOf(session: Browser): Page {
  return must(session.contexts()[0]?.pages()[0], 'the page of the session');
}

/** The picture of the session has arrived. */
async function isPainted(shown: Page | FrameLocator): Promise<void> {
  type Canvas = { getContext(kind: '2d'): { getImageData(...box: number[]): { data: number[] } } };
  const canvas = shown.locator('canvas').first();
  await until(() =>
    canvas.evaluate((one) => {
      const { data } = (one as unknown as Canvas).getContext('2d').getImageData(40, 40, 1, 1);
      return (data[3] ?? 0) > 0;
    }),
  );
}

async function write(page: Page, name: string): Promise<void> {
  const path = fileURLToPath(new URL(`${name}.jpg`, DOCS));
  await page.screenshot({ path, type: 'jpeg', quality: QUALITY });
}
