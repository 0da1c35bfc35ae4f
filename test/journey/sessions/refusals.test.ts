/**
 * A refused private address names the setting that allows it: in the error of the navigation, in
 * the console, in the session's log, and in the log of a handler. A flood of refusals has bounded
 * cost.
 */
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const test = suite('journey/sessions/refusals');
const SETTING = 'TABERN_BROWSER_ALLOW_CIDRS';
const LIMIT_MS = 30_000;
/** runner/sessions/components.ts */
const WARNINGS_MAX = 100;
/** Nothing private is allowed. */
const CLOSED = { env: { TABERN_BROWSER_ALLOW_CIDRS: '' } };

const FETCHES = {
  'package.json': '{"name":"fetches","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('fetches', async () => {
  await fetch('http://10.0.0.1/').catch(String);
  await fetch('https://10.0.0.1/').catch(String);
  await fetch('https://10.0.0.2/');
});
`,
};

type Session = { id: string; connectUrl: string };
type Entry = { method: string; request: { params: { message?: string } } };

async function warningsOf(stack: Stack, id: string): Promise<string[]> {
  const all = await stack.call<Entry[]>(`/v1/sessions/${id}/logs`);
  const own = all.filter(({ method }) => method === 'Tabern.warning');
  return own.map(({ request }) => String(request.params.message));
}

test('pages, console, log and handlers name the setting', async () => {
  await using stack = await boot(CLOSED);
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(connectUrl);
  const context = must(browser.contexts()[0], 'the context');
  const addresses = [
    ...['http://localhost:3000/', 'http://10.0.0.1/', 'https://10.0.0.1:8443/'],
    ...['http://169.254.169.254/', 'https://10.0.0.2/'],
  ];
  for (const address of addresses) {
    const page = await context.newPage(); // of its own: its error page comes after the error
    const error = await page.goto(address).then(() => 'a page', String);
    const { hostname } = new URL(address);
    assert.match(error, `net::ERR_ADDRESS_UNREACHABLE: ${hostname} is not reachable`);
    assert.match(error, SETTING);
    await page.close();
  }
  const other = await context.newPage();
  const said: string[] = [];
  other.on('console', (line) => said.push(line.text()));
  const isExplained = (host: string) => () =>
    said.some((text) => text.includes(`${host} is not reachable`) && text.includes(SETTING));
  await other.goto('data:text/html,<title>own</title>');
  await other.evaluate(`fetch('https://192.168.0.1:8443/').catch(() => undefined)`);
  await until(isExplained('192.168.0.1'), LIMIT_MS);
  await other.evaluate(`void new WebSocket('wss://192.168.0.2/')`);
  await until(isExplained('192.168.0.2'), LIMIT_MS);
  await other.evaluate(`fetch('http://192.168.0.3/').catch(() => undefined)`); // the last
  await browser.close();

  const isLast = (text: string) => text.startsWith('192.168.0.3');
  await until(async () => (await warningsOf(stack, id)).some(isLast), LIMIT_MS);
  const warnings = await warningsOf(stack, id);
  assert.is(warnings.length, 7, 'one for each host');
  for (const warning of warnings) assert.match(warning, SETTING);

  const { fetches = '' } = await publish(stack, FETCHES);
  const { id: invocationId, cause } = await ended(stack, (await invoke(stack, fetches)).id);
  assert.is(cause?.message, 'fetch failed');
  type Logs = { logs: { level: string; message: string }[] };
  const { logs } = await stack.call<Logs>(`/v1/functions/invocations/${invocationId}/logs`);
  const own = logs.filter(({ level }) => level === 'warn').map(({ message }) => message);
  assert.is(own.length, 3, String(own));
  for (const message of own) assert.match(message, SETTING);
});

test('a flood of refusals has 100 warnings and leaves the session usable', async () => {
  await using stack = await boot(CLOSED);
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await puppeteer.connect({ browserWSEndpoint: connectUrl });
  const [page] = await browser.pages();
  const flooded = must(page, 'the page');
  const flood = `(async () => {
    const hosts = [...Array(150).keys()].map((at) => '10.1.0.' + at);
    const ask = (host) => fetch('http://' + host + '/', { mode: 'no-cors' }).catch(() => 0);
    for (let round = 0; round < 10; round += 1) {
      for (let at = 0; at < hosts.length; at += 30) {
        await Promise.all(hosts.slice(at, at + 30).map(ask));
      }
    }
    return 1 + 1;
  })()`;
  assert.is(await flooded.evaluate(flood), 2);
  const going = flooded.goto('http://10.2.0.1/').then(() => 'a page', String);
  assert.match(await going, 'net::ERR_ADDRESS_UNREACHABLE', 'the session is usable');
  await browser.disconnect();
  const isEnded = async () =>
    (await stack.call<{ status: string }>(`/v1/sessions/${id}`)).status === 'COMPLETED';
  await until(isEnded, LIMIT_MS);
  const warnings = await warningsOf(stack, id);
  assert.is(warnings.length, WARNINGS_MAX + 1);
  assert.match(String(warnings.at(-1)), 'more than 100 hosts were refused');
  const logged = stack.logs().match(/egress denied/g) ?? [];
  assert.is(logged.length, 100, 'the operator reads each host once');
});

test.run();
