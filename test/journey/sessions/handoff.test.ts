/**
 * Handoffs: a client asks a person for help over REST and over CDP, the person answers in the live
 * view without a key, and the client hears of it; the session waits meanwhile.
 */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { openPerson, type Session } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/handoff');
const env = { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32', TABERN_SESSION_GRACE_MS: '300' };
const service = shareStack({ env });

type Handoff = { id: string; status: string; url?: string };

const statusOf = async (stack: Stack, { id }: Session) =>
  (await stack.call<Session>(`/v1/sessions/${id}`)).status;

async function ended(stack: Stack, session: Session): Promise<void> {
  await until(async () => (await statusOf(stack, session)) === 'COMPLETED', 60_000);
}

journey(
  'REST: the person reads the request, presses Done, and the session has waited',
  async () => {
    await using person = await openPerson();
    const stack = await service.get();
    const session = await stack.call<Session>('/v1/sessions', { json: {} });
    const path = `/v1/sessions/${session.id}/handoffs`;
    const agent = await chromium.connectOverCDP(session.connectUrl);
    const instructions = 'Log in as <b>you</b>';
    const asked = await stack.call<Handoff>(path, { json: { instructions, timeout: 120 } });
    const second = await stack.fetch(path, { json: { instructions: 'more' } });
    is(second.status, 409);
    await agent.close(); // it leaves, without keepAlive
    const { page } = person;
    await page.goto(must(asked.url, 'a link'));
    await page.locator('#done').waitFor(); // the request comes after the page
    is(await page.locator('#instructions').innerText(), instructions);
    is(await statusOf(stack, session), 'RUNNING');
    const waiting = stack.call<Handoff>(`${path}/${asked.id}?wait=60`);
    await page.locator('#done').click();
    const done = await waiting;
    equal([done.status, done.url], ['COMPLETED', undefined]);
    await page.locator('#handoff').waitFor({ state: 'hidden' });
    // the link is a credential, and it has ended with the handoff
    await page.locator('#over').getByText('request to you has ended').waitFor();
    const token = new URL(must(asked.url, 'a link')).searchParams.get('token');
    is((await fetch(`${stack.url}/live/status?token=${token}`)).status, 410);
    const again = await chromium.connectOverCDP(session.connectUrl);
    await again.close();
    await ended(stack, session);
    const late = await stack.fetch(path, { json: { instructions } });
    is(late.status, 410);
    equal((await stack.call<Handoff[]>(path)).length, 1);
  },
);

journey('CDP: the client that asked gets the link and the end, by either name', async () => {
  await using person = await openPerson();
  await using site = await startSite();
  const stack = await service.get();
  const session = await stack.call<Session>('/v1/sessions', { json: {} });
  const agent = await chromium.connectOverCDP(session.connectUrl);
  const page = must(agent.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(site.url);
  const cdp = (await page.context().newCDPSession(page)) as unknown as {
    send(method: string, params?: object): Promise<Record<string, string>>;
    once(event: string, listener: (event: Record<string, unknown>) => void): void;
  };
  for (const domain of ['Tabern', 'Cloudflare']) {
    const finished = new Promise<Record<string, unknown>>((resolve) => {
      cdp.once(`${domain}.handoffComplete`, resolve);
    });
    const asked = await cdp.send(`${domain}.handoff`, { instructions: 'Help', timeout: 60_000 });
    ok(asked['url']?.startsWith(`${stack.url}/live?token=`), asked['url']);
    await person.page.goto(must(asked['url'], 'a link'));
    await person.page.locator('#done').click();
    const { success, status } = await finished;
    equal([success, status], [true, 'COMPLETED'], domain);
  }
  const live = await cdp.send('Cloudflare.getLiveView', { mode: 'tab' });
  await person.page.goto(must(live['devtoolsFrontendUrl'], 'a link'));
  await person.page.locator('#over').waitFor({ state: 'hidden' });
  const links = [must(live['url'], 'a link')];
  const path = `/v1/sessions/${session.id}/handoffs`;
  const cancelled = new Promise<Record<string, unknown>>((resolve) => {
    cdp.once('Tabern.handoffComplete', resolve);
  });
  const { handoffId, url = '' } = await cdp.send('Tabern.handoff', { instructions: 'Help' });
  links.push(url);
  const wrong = await cdp.send('Tabern.handoff', { instructions: 'More' }).catch(String);
  match(String(wrong), /pending handoff/);
  for (const params of [{}, { instructions: 7 }, { instructions: 'x', timeout: -1 }]) {
    match(
      String(await cdp.send('Tabern.handoff', params).catch(String)),
      /`(instructions|timeout)`/,
    );
  }
  await stack.call(`${path}/${handoffId}/cancel`, { json: {} });
  const { success, reason } = await cancelled;
  equal([success, reason], [false, 'cancelled']);
  await agent.close();
  await ended(stack, session);
  // the links are credentials, and the log may be shared
  const log = await (await stack.fetch(`/v1/sessions/${session.id}/logs`)).text();
  ok(log.includes('Tabern.handoff'), 'the commands are in the log');
  for (const link of links) {
    ok(!log.includes(must(link.split('token=')[1], 'a token')), 'no token is in the log');
  }
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
