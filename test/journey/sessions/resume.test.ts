/**
 * Playwright and Puppeteer drive a session over a line that is cut again and again, also within a
 * frame, and over a gateway that is killed: no event is lost and no command repeated.
 */
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { resumable } from '../../../runner/resume/mod.ts';
import { startApart } from '../../faults/apart.ts';
import { openCutLine } from '../../support/clients/cut-line.ts';
import { until } from '../../support/poll.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';
import { sized } from '../../support/whole.ts';

const journey = suite('journey/sessions/resume');
const service = shareStack({ env: { TABERN_SESSION_GRACE_MS: '200' } });
/** TABERN_TEST_CUTS: more of them, on demand. */
const CUTS = Number(process.env['TABERN_TEST_CUTS'] ?? sized(24, 100));
/** Of a gateway of its own process. */
const KILLS = sized(3, 20);
/** Ours: several times the longest message, which would never arrive otherwise. */
const WITHIN_BYTES = 120_000;

type Session = { id: string; status: string; connectUrl: string };

const create = (stack: Stack, json: object = {}) => stack.call<Session>('/v1/sessions', { json });
const statusOf = async (stack: Stack, { id }: Session) =>
  (await stack.call<Session>(`/v1/sessions/${id}`)).status;

/** In a page: a click is a command that must not be repeated, and `tick` an event. */
const PAGE = `<button onclick="tick(++clicks)">click</button><script>clicks = 0</script>`;

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

journey('Playwright loses no event and repeats no command while its line is cut', async () => {
  const stack = await service.get();
  const session = await create(stack);
  await using line = await openCutLine(stack.url);
  const connection = await resumable(line.over(session.connectUrl));
  const browser = await chromium.connectOverCDP(await connection.listen());
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  const ticks: number[] = [];
  await page.exposeFunction('tick', (count: number) => void ticks.push(count));
  await page.setContent(PAGE);
  await page.locator('button').hover(); // sends Playwright's own script once, of some 300 KB
  line.cutWithin(WITHIN_BYTES);
  line.cut();
  let clicks = 0;
  while (line.cuts < CUTS) {
    await page.evaluate('document.querySelector("button").click()');
    clicks += 1;
    if (clicks % 10 === 0) {
      await page.locator('button').click({ timeout: 0 });
      clicks += 1;
    }
    is(await page.evaluate('clicks'), clicks);
    if (clicks % 7 === 0) is((await page.evaluate<string>('"x".repeat(40000)')).length, 40_000);
    if (clicks % 7 === 0)
      is(await page.evaluate((text) => text.length, 'y'.repeat(30_000)), 30_000);
  }
  await until(() => ticks.length >= clicks);
  equal(ticks, upTo(clicks));
  line.cutWithin(0);
  await browser.close();
  await until(async () => (await statusOf(stack, session)) === 'COMPLETED');
  console.log(`${line.cuts} cuts, ${clicks} clicks`);
});

journey('Puppeteer does so over the same connection as a transport', async () => {
  const stack = await service.get();
  const session = await create(stack, { browserSettings: { engine: 'headless-shell' } });
  await using line = await openCutLine(stack.url);
  const transport = await resumable(line.over(session.connectUrl), { WebSocket });
  const browser = await puppeteer.connect({ transport });
  const [page] = await browser.pages();
  ok(page);
  const ticks: number[] = [];
  await page.exposeFunction('tick', (count: number) => void ticks.push(count));
  await page.setContent(PAGE);
  await page.click('button');
  line.cutWithin(WITHIN_BYTES);
  line.cut();
  let clicks = 1;
  while (line.cuts < CUTS / 4) {
    await page.click('button');
    clicks += 1;
    is(await page.evaluate('clicks'), clicks);
  }
  await until(() => ticks.length >= clicks);
  equal(ticks, upTo(clicks));
  line.cutWithin(0);
  await browser.disconnect();
  await until(async () => (await statusOf(stack, session)) === 'COMPLETED');
});

/** Connected with `?resume=`; its token, its messages and its close. */
async function open(url: string, query: string) {
  const client = new WebSocket(`${url}&resume=${query}`);
  const messages: string[] = [];
  client.on('message', (text) => void messages.push(String(text)));
  const closed = once(client, 'close').then(([code, reason]) => `${code} ${reason}`);
  const [response] = (await once(client, 'upgrade')) as [{ headers: Record<string, string> }];
  return { client, messages, closed, token: response.headers['x-svc-resume-token'] };
}

journey('what happens while the line is gone arrives; a wrong token is refused', async () => {
  const stack = await service.get();
  const [session, other] = [await create(stack), await create(stack)];
  const first = await open(session.connectUrl, 'new');
  const token = must(first.token, 'a token');
  await until(() => first.messages.length > 0);
  const greeting = JSON.parse(first.messages[0] ?? '');
  is(greeting.method, 'Tabern.resumable');
  is(greeting.params.token, token);
  const late = `new Promise((done) => setTimeout(done, 500, 'late'))`;
  const params = { expression: late, awaitPromise: true, returnByValue: true };
  const target = (await stack.call<{ pages: { id: string }[] }>(`/v1/sessions/${session.id}/debug`))
    .pages[0]?.id;
  const attach = { targetId: must(target, 'a page'), flatten: true };
  first.client.send(JSON.stringify({ id: 1, method: 'Target.attachToTarget', params: attach }));
  await until(() => first.messages.some((text) => text.startsWith('{"id":1,')));
  const answer = first.messages.find((text) => text.startsWith('{"id":1,')) ?? '';
  const { sessionId } = JSON.parse(answer).result;
  const evaluate = JSON.stringify({ id: 2, method: 'Runtime.evaluate', params, sessionId });
  first.client.send(evaluate, () => first.client.terminate());
  await first.closed;
  const received = first.messages.length - 1;

  const wrong: [url: string, query: string, closed: string][] = [
    [session.connectUrl, `${token.slice(1)}x&received=${received}`, '4404 no such resume token'],
    [other.connectUrl, `${token}&received=${received}`, '4404 no such resume token'],
    [session.connectUrl, `${token}&received=1000`, '4400 no such number of received messages'],
    [session.connectUrl, token, '4400 no such number of received messages'],
  ];
  for (const [url, query, expected] of wrong) is(await (await open(url, query)).closed, expected);
  const again = await open(session.connectUrl, `${token}&received=${received}`);
  await until(() => again.messages.some((text) => text.startsWith('{"id":2,')));
  equal(JSON.parse(again.messages[0] ?? ''), { method: 'Tabern.resumed', params: { received: 2 } });
  match(again.messages.find((text) => text.startsWith('{"id":2,')) ?? '', /"late"/);
  again.client.close(1000);
  await again.closed;
  const gone = await open(session.connectUrl, `${token}&received=${received}`);
  is(await gone.closed, '4410 the client has left');
  const refused = new WebSocket(`ws${stack.url.slice(4)}?apiKey=${stack.apiKey}&resume=new`);
  refused.on('error', () => undefined);
  const [, response] = await once(refused, 'unexpected-response');
  is(response.statusCode, 400, 'its address would start another session');
});

journey('a revoked key ends its connections within a second, also a held one', async () => {
  const stack = await service.get();
  using operator = operatorOf(stack.dataDir);
  const wanted = { project: 'default', name: 'leaked' };
  const { key, apiKey } = await operator.operators.createApiKey(wanted, operator.options);
  const { id } = await create(stack, { keepAlive: true });
  const mine = `ws${stack.url.slice(4)}?apiKey=${stack.apiKey}&sessionId=${id}`;
  const theirs = `ws${stack.url.slice(4)}?apiKey=${key}&sessionId=${id}`;
  const [held, connected, own] = [
    await open(theirs, 'new'),
    await open(theirs, 'new'),
    await open(mine, 'new'),
  ];
  held.client.terminate();
  await held.closed;
  const other = await open(mine, `${held.token}&received=0`);
  is(await other.closed, '4404 no such resume token', 'it is of another key');
  await operator.operators.revokeApiKey({ id: must(apiKey, 'key').id }, operator.options);
  const revokedAt = performance.now();
  is(await connected.closed, '1008 the API key was revoked');
  console.log(`closed ${Math.round(performance.now() - revokedAt)} ms after the revocation`);
  const refused = new WebSocket(`${theirs}&resume=${held.token}&received=0`);
  refused.on('error', () => undefined);
  const [, response] = await once(refused, 'unexpected-response');
  is(response.statusCode, 401);
  // the runner has ended the connections of the key, and not that of the other one
  for (const token of [held.token, connected.token]) {
    is(await (await open(mine, `${token}&received=0`)).closed, '4410 the API key was revoked');
  }
  own.client.send('{"id":1,"method":"Browser.getVersion"}');
  await until(() => own.messages.some((text) => text.startsWith('{"id":1,')));
  own.client.close(1000);
});

/** In a page: typing is a row of commands that must not be repeated, and `typed` an event. */
const TYPED = `<input oninput="typed(this.value)">`;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

journey(`${KILLS} kills of the gateway lose no event of a client that resumes`, async () => {
  await using apart = await startApart();
  const session = await apart.call<Session>('/v1/sessions', { json: {} });
  const connection = await resumable(session.connectUrl);
  const browser = await chromium.connectOverCDP(await connection.listen());
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  const values: string[] = [];
  await page.exposeFunction('typed', (value: string) => void values.push(value));
  await page.setContent(TYPED);
  await page.locator('input').focus();
  let text = '';
  let isKilling = true;
  const type = async (): Promise<void> => {
    while (isKilling) {
      const letter = LETTERS.charAt(text.length % LETTERS.length);
      await page.keyboard.press(letter, { delay: 5 });
      text += letter;
    }
  };
  const typing = type();
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const before = text.length;
    await until(() => text.length > before + 5);
    await apart.kill('gateway');
    await until(() => text.length > before + 10);
  }
  isKilling = false;
  await typing;
  await until(() => values.length >= text.length);
  const expected = Array.from(text, (_, at) => text.slice(0, at + 1));
  equal(values, expected);
  is(await page.inputValue('input'), text);
  await browser.close();
  const status = async () => (await apart.call<Session>(`/v1/sessions/${session.id}`)).status;
  await until(async () => (await status()) === 'COMPLETED');
  console.log(`${KILLS} kills, ${text.length} letters`);
  await apart.stop();
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
