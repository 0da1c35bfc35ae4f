/** Slots for sessions, the save of a context, and the session of an invocation. */
import { once } from 'node:events';
import { type Browser, chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { ended, type Invocation, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/place');

type Session = { id: string; status: string; connectUrl: string };

const create = (stack: Stack, json: object = {}) => stack.call<Session>('/v1/sessions', { json });

async function endOf(stack: Stack, { id }: Session): Promise<string> {
  return await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status !== 'PENDING' && status !== 'RUNNING' && status;
  });
}

function pageOf(browser: Browser) {
  return must(browser.contexts()[0]?.pages()[0], 'the default page');
}

journey('with all slots in use, a session waits and starts when a slot is free', async () => {
  await using stack = await boot({
    env: { TABERN_SESSIONS_MAX: '1', TABERN_SESSION_GRACE_MS: '0' },
  });
  const slots = await stack.pidsOf('runner');
  const held = await Promise.all(slots.map(() => create(stack, { keepAlive: true })));
  const first = must(held[0], 'a session');
  const waiting = create(stack, { keepAlive: true });
  const pending = await until(async () => {
    const [one] = await stack.call<Session[]>('/v1/sessions?status=PENDING');
    return one;
  });
  // a connection waits for the session
  const { connectUrl } = await stack.call<Session>(`/v1/sessions/${pending.id}`);
  const client = new WebSocket(connectUrl);
  const opened = once(client, 'open');
  await stack.call(`/v1/sessions/${first.id}`, { json: { status: 'REQUEST_RELEASE' } });
  is((await waiting).status, 'RUNNING');
  await opened;
  is(await endOf(stack, first), 'COMPLETED');
  client.close();
});

journey('above the project’s limit, an upgrade is refused with the fix', async () => {
  await using stack = await boot({ env: { TABERN_CONCURRENCY: '1' } });
  const session = await create(stack, { keepAlive: true });
  const url = `${stack.url.replace('http', 'ws')}/?apiKey=${stack.apiKey}`;
  const refused = new WebSocket(url).on('error', () => {});
  const [, response] = await once(refused, 'unexpected-response');
  let text = '';
  for await (const part of response) text += part;
  is(response.statusCode, 429);
  match(JSON.parse(text).message, /limit 1, currently 1.*free as soon as a session ends/);
  ok(Number(response.headers['retry-after']) > 0);
  await stack.fetch(`/v1/sessions/${session.id}`, { method: 'DELETE' });
  const client = new WebSocket(url);
  await once(client, 'open'); // the slot was free at once
  client.close();
});

journey('a context is saved before its session is reported as ended', async () => {
  await using site = await startSite();
  await using stack = await boot({ env: { TABERN_SESSION_GRACE_MS: '0' } });
  const { id } = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
  const visit = async (persist: boolean, script: string): Promise<unknown> => {
    const session = await create(stack, { browserSettings: { context: { id, persist } } });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = pageOf(browser);
    await page.goto(site.url);
    const value = await page.evaluate(script);
    await browser.close();
    is(await endOf(stack, session), 'COMPLETED');
    return value;
  };
  await visit(true, 'localStorage.setItem("a", "kept"); document.cookie = "b=kept"');
  const read = '[localStorage.getItem("a"), document.cookie]';
  equal(await visit(false, `const was = ${read}; localStorage.clear(); was`), ['kept', 'b=kept']);
  equal(await visit(false, read), ['kept', 'b=kept']);
});

/** Its handler waits for a value that another client of its browser sets. */
const WAITING = {
  'package.json': '{"name":"waiting","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('waiting', async (ctx) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  const next = (type) => new Promise((done) => socket.addEventListener(type, done, { once: true }));
  await next('open');
  for (;;) {
    socket.send(JSON.stringify({ id: 1, method: 'Target.getTargets' }));
    const { data } = await next('message');
    const urls = JSON.parse(data).result.targetInfos.map(({ url }) => url);
    if (urls.includes('data:,word')) return urls;
  }
});
`,
};

journey('a client with the connectUrl can use the browser of a running invocation', async () => {
  await using stack = await boot();
  const { waiting = '' } = await publish(stack, WAITING);
  const json = { params: {} };
  const { id, sessionId } = await stack.call<Invocation>(`/v1/functions/${waiting}/invoke`, {
    json,
  });
  const { connectUrl } = await stack.call<Session>(`/v1/sessions/${sessionId}`);
  const client = new WebSocket(connectUrl);
  await once(client, 'open');
  const params = { url: 'data:,word' };
  client.send(JSON.stringify({ id: 1, method: 'Target.createTarget', params }));
  const closed = once(client, 'close');
  is((await ended(stack, id)).status, 'COMPLETED', stack.logs());
  const [code, reason] = await closed;
  is(`${code} ${reason}`, '1000 the invocation has ended');
  const late = new WebSocket(connectUrl).on('error', () => {});
  const [, response] = await once(late, 'unexpected-response');
  is(response.statusCode, 410);
});

journey.run();
