/**
 * The console when something is wrong: the failed request of a failed run is found in a few steps,
 * a service that is killed or whose clock is set shows the right list again, without doubles.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { logIn, openConsole, type Person, untilText } from '../../support/clients/console.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { bootAt } from './looks/scene.ts';

const journey = suite('journey/console/trouble');

const HOUR_MS = 3_600_000;
/** Visits the page of its params, whose request fails, and fails itself. No package. */
const SHOPPER = `import { defineFn } from 'tabern';
defineFn('shopper', async (ctx, { url }) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let last = 0;
  const call = (method, params, sessionId) => new Promise((resolve) => {
    const id = ++last;
    socket.addEventListener('message', ({ data }) => {
      const answer = JSON.parse(data);
      if (answer.id === id) resolve(answer.result);
    });
    socket.send(JSON.stringify({ id, method, params, sessionId }));
  });
  const { targetInfos } = await call('Target.getTargets');
  const { targetId } = targetInfos.find(({ type }) => type === 'page');
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  await call('Network.enable', {}, sessionId);
  await call('Page.navigate', { url }, sessionId);
  const expression = 'fetch("/basket").then((one) => one.status)';
  await call('Runtime.evaluate', { expression, awaitPromise: true }, sessionId);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  throw new Error('the basket is closed');
});`;
const FILES = {
  'package.json': '{"name":"shopper","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': SHOPPER,
};

type Session = { id: string };

/** The ids in the list, as it is shown. */
function idsShown({ page }: Person): Promise<string[]> {
  return page.evaluate<string[]>(
    `[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.id)`,
  );
}

function createSession(stack: Stack): Promise<Session> {
  return stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
}

/** Waits until the list has exactly these sessions, the newest first. */
async function untilListed(person: Person, sessions: readonly Session[]): Promise<void> {
  const wanted = sessions.map(({ id }) => id).join();
  await until(async () => (await idsShown(person)).join() === wanted);
}

journey('from the overview to a failed request and its picture in three steps', async () => {
  await using shop = createServer((request, response) => {
    response.statusCode = request.url === '/basket' ? 503 : 200;
    response.setHeader('content-type', 'text/html').end('<title>shop</title><h1>Shop</h1>');
  }).listen(0, '127.0.0.1');
  await once(shop, 'listening');
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/`;
  await using stack = await boot();
  const { shopper } = await publish(stack, FILES);
  const { id } = await invoke(stack, must(shopper, 'the function'), { url });
  is((await ended(stack, id)).cause?.message, 'the basket is closed');

  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.getByRole('link', { name: 'shopper' }).click();
  await page.getByRole('link', { name: 'its session' }).click();
  await untilText(page, '.lists', '/basket');
  await page.keyboard.press('e');
  await untilText(page, '.inspector', '503');
  await until(() => page.evaluate<boolean>(`document.querySelector('video')?.readyState >= 2`));
  match(await page.locator('.inspector').innerText(), /\/basket/);
  equal(person.faults, []);
});

journey('a service that is killed and started again: each session once', async () => {
  await using stack = await boot();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const first = await createSession(stack);
  await page.goto(`${stack.url}/console/p/${stack.projectId}/sessions`);
  await untilListed(person, [first]);
  await stack.kill('SIGKILL');
  await page.locator('.dot.lost').waitFor();
  await stack.restart();
  const second = await createSession(stack);
  await page.locator('.dot.live').waitFor();
  await untilListed(person, [second, first]);
  // what ran was lost with the service, and the list knows it
  await until(async () => !(await page.locator('tbody tr').last().innerText()).includes('Running'));
});

journey('a service whose clock is set an hour on: each session once, and its age', async () => {
  await using scene = await bootAt(Date.now() - HOUR_MS);
  const { stack } = scene;
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const first = await createSession(stack);
  await person.page.goto(`${stack.url}/console/p/${stack.projectId}/sessions`);
  await untilListed(person, [first]);
  await scene.setClock(Date.now());
  const second = await createSession(stack);
  await untilListed(person, [second, first]);
  for (const { id } of [first, second]) {
    const json = { projectId: stack.projectId, status: 'REQUEST_RELEASE' };
    await stack.call(`/v1/sessions/${id}`, { json });
  }
  await until(async () => !(await person.page.locator('tbody').innerText()).includes('Running'));
  equal(person.faults, []);
});

journey.run();
