/** Overrides of a client after a navigation to another site, beside the runner's own sessions. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pageOverrides } from '../../../../runner/browser/cdp/page-overrides.ts';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import { attach } from '../../../../runner/browser/cdp/target-session.ts';
import { openRaw, type Raw } from '../../../runner/sessions/relay/raw.ts';
import { until as polled } from '../../../support/poll.ts';
import { type Lab, openLab, until } from '../lab.ts';

const test = suite('runner/browser/cdp/page-overrides');
const ENGINES = [{}, { program: '/usr/bin/chromium' }];
const PRINT = { media: 'print' };
const NOW = `[matchMedia('print').matches, navigator.platform].join()`;
const AGENT = { userAgent: 'mine', platform: 'Amiga' };

/** A new page of a client, which has attached to the page before the runner does. */
async function newPage(lab: Lab, client: Raw): Promise<{ targetId: string; session: string }> {
  const pages = await openPages(lab.chrome);
  await client.call('Target.setAutoAttach', {
    autoAttach: true,
    waitForDebuggerOnStart: false,
    flatten: true,
  });
  const { targetId: id } = await client.call('Target.createTarget', { url: 'about:blank' });
  const targetId = String(id);
  const attached = () =>
    client.said.find((text) => text.includes('attachedToTarget') && text.includes(targetId));
  await until(() => attached() !== undefined, 'the client has attached');
  const isOwn = () => pages.open().some((page) => page.targetId === targetId);
  await until(isOwn, 'the runner has attached');
  return { targetId, session: JSON.parse(attached() ?? '{}').params.sessionId };
}

async function evaluate(client: Raw, session: string, expression: string): Promise<unknown> {
  const params = { expression, returnByValue: true, awaitPromise: true };
  const { result } = await client.call('Runtime.evaluate', params, session);
  return (result as { value: unknown }).value;
}

/** What a page sees after a navigation. */
async function seenAt(url: string, client: Raw, session: string): Promise<unknown> {
  await client.call('Page.navigate', { url }, session);
  const expression = '[location.href, document.readyState].join()';
  await polled(async () => (await evaluate(client, session, expression)) === `${url},complete`);
  const look = `[matchMedia('print').matches, navigator.platform, navigator.userAgent]`;
  return evaluate(client, session, look);
}

test('after a session has ended, a value is repeated at once and after an answer', async () => {
  const overrides = pageOverrides({} as Pipe);
  const answers: (() => void)[] = [];
  const media: string[] = [];
  const kept = {
    call(_method: string, params: object) {
      media.push((params as { media: string }).media);
      return new Promise((resolve) => answers.push(() => resolve({})));
    },
  };
  overrides.join('page', kept);
  const leave = overrides.join('page', { call: async () => ({}) });
  const client = {};
  overrides.observe({ method: 'Emulation.setEmulatedMedia', params: PRINT }, 'page', client);
  leave();
  assert.equal(media, ['print', 'print']);
  answers[1]?.();
  await polled(() => media.length === 3);
  assert.equal(media, ['print', 'print', 'print']);

  leave();
  overrides.observe({ method: 'Emulation.setEmulatedMedia', params: {} }, 'page', client);
  answers[3]?.();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(media.slice(3), ['print', ''], 'a value that was removed is not set again');
});

for (const launch of ENGINES) {
  const engine = 'program' in launch ? 'Chromium' : 'headless-shell';

  test(`${engine}: a medium and a platform survive a navigation to another site`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const client = await openRaw(lab.connectUrl);
    const { targetId, session } = await newPage(lab, client);
    const other = `${lab.siteUrl.replace('127.0.0.1', 'localhost')}/`;
    await client.call('Emulation.setEmulatedMedia', PRINT, session);
    await client.call('Network.setUserAgentOverride', AGENT, session);
    const expected = [true, 'Amiga', 'mine'];
    assert.equal(await seenAt(`${lab.siteUrl}/`, client, session), expected);
    await using _later = await attach(lab.chrome.pipe, targetId);
    assert.equal(await seenAt(other, client, session), expected);
    client.socket.close();
    await client.closed;
  });

  test(`${engine}: an override that a client removes is removed`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const client = await openRaw(lab.connectUrl);
    const { targetId, session } = await newPage(lab, client);
    await client.call('Emulation.setEmulatedMedia', PRINT, session);
    await client.call('Emulation.setUserAgentOverride', AGENT, session);
    await client.call('Emulation.setEmulatedMedia', {}, session);
    await client.call('Emulation.setUserAgentOverride', { userAgent: 'mine' }, session);
    const [isPrint, platform] = (await seenAt(`${lab.siteUrl}/`, client, session)) as unknown[];
    assert.equal([isPrint, platform], [false, 'Linux x86_64']);

    await client.call('Emulation.setEmulatedMedia', PRINT, session);
    await client.call('Emulation.setUserAgentOverride', AGENT, session);
    client.socket.close();
    await client.closed;
    await until(() => lab.relay.clients === 0, 'the client has left');
    const next = await openRaw(lab.connectUrl);
    const { sessionId } = await next.call('Target.attachToTarget', { targetId, flatten: true });
    const url = `${lab.siteUrl.replace('127.0.0.1', 'localhost')}/`;
    const seen = (await seenAt(url, next, String(sessionId))) as unknown[];
    assert.equal(seen.slice(0, 2), [false, 'Linux x86_64']);
    next.socket.close();
    await next.closed;
  });

  test(`${engine}: an override survives the end of a session of the runner`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const client = await openRaw(lab.connectUrl);
    const { targetId, session } = await newPage(lab, client);
    await client.call('Emulation.setEmulatedMedia', PRINT, session);
    await client.call('Emulation.setUserAgentOverride', AGENT, session);
    {
      await using _viewer = await attach(lab.chrome.pipe, targetId);
    }
    const isThere = async () => (await evaluate(client, session, NOW)) === 'true,Amiga';
    await polled(isThere);
    client.socket.close();
    await client.closed;
  });

  test(`${engine}: when a client disconnects, the override of the other applies`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const client = await openRaw(lab.connectUrl);
    const { targetId, session } = await newPage(lab, client);
    await client.call('Emulation.setEmulatedMedia', PRINT, session);
    const other = await openRaw(lab.connectUrl);
    const { sessionId } = await other.call('Target.attachToTarget', { targetId, flatten: true });
    await other.call('Emulation.setEmulatedMedia', { media: 'screen' }, String(sessionId));
    other.socket.close();
    await other.closed;
    await until(() => lab.relay.clients === 1, 'the other client has left');
    const [isPrint] = (await seenAt(`${lab.siteUrl}/`, client, session)) as unknown[];
    assert.is(isPrint, true);
    client.socket.close();
    await client.closed;
  });

  test(`${engine}: the session of one client that ends keeps the override of another`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const client = await openRaw(lab.connectUrl);
    const { targetId, session } = await newPage(lab, client);
    const other = await openRaw(lab.connectUrl);
    const { sessionId } = await other.call('Target.attachToTarget', { targetId, flatten: true });
    await other.call('Emulation.setUserAgentOverride', AGENT, String(sessionId));
    await client.call('Emulation.setUserAgentOverride', AGENT, session);
    await other.call('Target.detachFromTarget', { sessionId });
    const [, platform] = (await seenAt(`${lab.siteUrl}/`, client, session)) as unknown[];
    assert.is(platform, 'Amiga');
    for (const one of [client, other]) {
      one.socket.close();
      await one.closed;
    }
  });
}

test.run();
