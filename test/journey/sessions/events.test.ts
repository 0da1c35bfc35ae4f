/**
 * Events of a session at a webhook: from its creation to its recording and a file that its page
 * has downloaded, signed and each once. The webhook is made with the published SDK.
 */
import Browserbase from '@browserbasehq/sdk';
import { chromium } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { DRAW } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startReceiver } from '../../support/servers/receiver.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/events');

const TYPES = [
  ...['sessions.created', 'sessions.running', 'sessions.ended'],
  ...['sessions.recording.ready', 'sessions.download.ready'],
];
type Told = { type: string; resourceId: string; data: Record<string, unknown> };

/** In a page: saves a file. */
const SAVE = `{
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(['a,b']));
  link.download = 'rooms.csv';
  link.click();
}`;

journey('a webhook hears of a session, its recording and its download', async () => {
  await using receiver = await startReceiver();
  await using site = await startSite();
  await using stack = await boot({
    env: {
      TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32',
      TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
      TABERN_WEBHOOK_CA: receiver.caPath,
      TABERN_SESSION_GRACE_MS: '200',
    },
  });
  const client = new Browserbase({ apiKey: stack.apiKey, baseURL: stack.url });
  const made = await client.webhooks.create({
    endpoint: `${receiver.url}/hook`,
    eventTypes: TYPES as never, // newer than the client's list
  });
  const secret = must((made as { secret?: string }).secret, 'a secret');
  const session = await client.sessions.create({ userMetadata: { order: '17' } });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(site.url);
  const saved = page.waitForEvent('download').then((download) => download.path());
  await page.evaluate(SAVE);
  await page.evaluate(DRAW);
  await saved;
  await browser.close();
  const told = await until(() => {
    const bodies = receiver.requests.map(({ headers, body }) => {
      return new Webhook(secret).verify(body, headers as Record<string, string>) as Told;
    });
    return bodies.length >= TYPES.length && bodies;
  }, 60_000);
  equal(told.map(({ type }) => type).sort(), [...TYPES].sort());
  const of = (type: string) =>
    must(
      told.find((one) => one.type === `sessions.${type}`),
      type,
    );
  for (const type of ['created', 'running', 'ended', 'recording.ready']) {
    is(of(type).resourceId, session.id, type);
  }
  equal(of('created').data['userMetadata'], { order: '17' });
  match(String(of('ended').data['endReason']), /client/);
  const file = of('download.ready');
  equal([file.data['filename'], file.data['sessionId']], ['rooms.csv', session.id]);
  const bytes = await stack.fetch(`/v1/downloads/${file.resourceId}`, {
    headers: { accept: 'application/octet-stream' },
  });
  is(await bytes.text(), 'a,b');
});

journey.run();
