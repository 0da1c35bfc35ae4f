/** The sessions of one-shots, with a real browser: their context, proxies, filter list, events. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { startPages } from '../../support/servers/pages.ts';
import { startHttpProxy } from '../../support/servers/proxies.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/functions/one-shot-sessions');
const LOCAL = { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' };
const service = shareStack({ env: LOCAL });

/** The content of the page's first `pre`, or of its body. */
async function read(stack: Stack, json: object): Promise<string> {
  const answer = await stack.fetch('/v1/content', { json });
  const text = await answer.text();
  is(answer.status, 200, text);
  return text;
}

async function keepLogin(stack: Stack, url: string): Promise<string> {
  const { id } = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
  const json = { browserSettings: { context: { id, persist: true } } };
  type Session = { id: string; connectUrl: string; status: string };
  const session = await stack.call<Session>('/v1/sessions', { json });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(url);
  await page.evaluate("document.cookie = 'guest=7; max-age=1000'; document.cookie");
  await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
  await until(async () => {
    return (await stack.call<Session>(`/v1/sessions/${session.id}`)).status === 'COMPLETED';
  });
  return id;
}

journey('a context is the login of the page, and stays as it was', async () => {
  const stack = await service.get();
  await using pages = await startPages();
  const context = { id: await keepLogin(stack, pages.url) };
  const url = `${pages.url}/echo`;
  match(await read(stack, { url, context }), /"cookie":"guest=7"/);
  ok(!(await read(stack, { url })).includes('guest=7'), 'another has none');
  const more = { context, cookies: [{ name: 'guest', value: '8' }] };
  match(await read(stack, { url, ...more }), /"cookie":"guest=8"/);
  match(await read(stack, { url, context }), /"cookie":"guest=7"/);
  const unknown = { url, context: { id: '01934f3e-0000-7000-8000-000000000000' } };
  is((await stack.fetch('/v1/content', { json: unknown })).status, 404);
});

journey('proxies take the hosts of their patterns', async () => {
  const stack = await service.get();
  await using pages = await startPages();
  const port = Number(new URL(pages.url).port);
  await using proxy = await startHttpProxy(port, { username: 'me', password: 'secret' });
  const server = `http://${proxy.address}`;
  const external = { type: 'external', server, username: 'me', password: 'secret' };
  const proxies = [
    { ...external, domainPattern: '^far\\.' },
    { type: 'none', domainPattern: '^127\\.' },
  ];
  match(await read(stack, { url: 'http://far.test/a', proxies }), /through the proxy/);
  match(await read(stack, { url: pages.url, proxies }), /The inn/);
  equal(
    proxy.asked.filter((line) => line.endsWith('/a')),
    ['GET http://far.test/a'],
  );
});

journey('a filter list blocks its hosts', async () => {
  await using pages = await startPages();
  await using directory = tempDirectory();
  const list = join(directory.path, 'list.txt');
  writeFileSync(list, '||localhost^');
  await using stack = await boot({ env: { ...LOCAL, TABERN_AD_LISTS: list } });
  const advert = pages.url.replace('127.0.0.1', 'localhost');
  const html = `<img src="${advert}/data.json"><img src="${pages.url}/picture">`;
  await read(stack, { html, blockAds: true });
  ok(pages.visits.includes('/picture'));
  ok(!pages.visits.includes('/data.json'));
});

journey('tables are tables of markdown', async () => {
  const stack = await service.get();
  const rows = [
    ['Room', 'Beds'],
    ['Seven', '2'],
  ];
  const line = (cells: string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  const [head = [], ...body] = rows;
  const lines = body.map((cells) => line(cells, 'td')).join('');
  const html = `<table><thead>${line(head, 'th')}</thead><tbody>${lines}</tbody></table>`;
  const answer = await stack.fetch('/v1/markdown', { json: { html, selector: 'table' } });
  is(await answer.text(), '| Room | Beds |\n| --- | --- |\n| Seven | 2 |');
});

journey('its session has the events of every session', async () => {
  const stack = await service.get();
  type Events = { data: { type: string; body: string }[]; nextCursor: string };
  const { nextCursor } = await stack.call<Events>('/v1/events');
  const answer = await stack.fetch('/v1/links', { json: { html: '<p>' } });
  is(answer.status, 200, await answer.text());
  const id = answer.headers.get('x-session-id');
  const types = await until(async () => {
    const { data } = await stack.call<Events>(`/v1/events?cursor=${nextCursor}`);
    const found = data.filter(({ body }) => body.includes(`"resourceId":"${id}"`));
    return found.length >= 3 && found.map(({ type }) => type).sort();
  });
  equal(types, ['sessions.created', 'sessions.ended', 'sessions.running']);
});

journey('ends the service', () => service.end());

journey.run();
