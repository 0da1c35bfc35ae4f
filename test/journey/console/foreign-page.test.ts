/**
 * A page of another server of the same machine, in the browser of a person who is logged in to the
 * console. Cookies have no port, so the browser sends the login's cookie with its requests.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPerson } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { shareStack } from '../../support/service/stack.ts';

const test = suite('journey/console/foreign-page');

const shared = shareStack();

/** A server with one empty page. */
async function openForeign() {
  const cookies: (string | undefined)[] = [];
  const server = createServer((request, answer) => {
    cookies.push(request.headers.cookie);
    answer.setHeader('content-type', 'text/html').end('<!doctype html><p>foreign</p>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Of the requests that it received. */
    cookies,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The status of a request of the page; 0 when the browser hides the answer. */
function statusIn(page: Page, url: string, init: object = {}): Promise<number> {
  return page.evaluate(
    async ([to, how]) => {
      const answer = await fetch(to, { credentials: 'include', ...how }).catch(() => undefined);
      return answer?.status ?? 0;
    },
    [url, init] as const,
  );
}

async function logIn(page: Page, { url, apiKey }: { url: string; apiKey: string }): Promise<void> {
  await page.goto(`${url}/console`);
  const headers = { 'content-type': 'application/json' };
  const login = { method: 'POST', headers, body: JSON.stringify({ apiKey }) };
  assert.is(await statusIn(page, `${url}/console/login`, login), 200);
}

test('it can neither read, write, log out nor frame the console', async () => {
  const stack = await shared.get();
  const { url } = stack;
  await using person = await openPerson();
  await using foreign = await openForeign();
  const own = person.page;
  await logIn(own, stack);
  const page = await own.context().newPage();
  await page.goto(foreign.url);
  assert.match(foreign.cookies[0] ?? '', /^tabern=/, 'the browser sends the cookie to every port');

  const requests = [
    ...['/v1/projects', '/console/api/v1/me', '/console/api/v1/changes'].map((path) => ({ path })),
    ...['/v1/contexts', '/console/login', '/console/logout'].map((path) => ({ path, body: '{}' })),
  ];
  for (const { path, ...body } of requests) {
    const method = 'body' in body ? 'POST' : 'GET';
    const answered = page.waitForResponse(url + path);
    await statusIn(page, url + path, { method, mode: 'no-cors', ...body });
    assert.is((await answered).status(), 403, path);
    assert.is(await statusIn(page, url + path, { method, ...body }), 0, `${path} is hidden`);
  }
  const submitted = page.waitForResponse(`${url}/v1/contexts`);
  await page.setContent(`
    <iframe name="out"></iframe>
    <form method="post" action="${url}/v1/contexts" enctype="text/plain" target="out"></form>`);
  await page.evaluate('document.forms[0].submit()');
  assert.is((await submitted).status(), 403, 'a form');

  await page.setContent(`<iframe src="${url}/console"></iframe>`);
  const isRefused = () => page.frames().some((frame) => frame.url().startsWith('chrome-error:'));
  await until(isRefused);

  const { data } = await stack.call<{ data: unknown[] }>('/v1/contexts');
  assert.equal(data, [], 'none was created');
  assert.is(await statusIn(own, `${url}/console/api/v1/me`), 200, 'still logged in');
});

test('a window that it opens is out of its reach', async () => {
  const stack = await shared.get();
  await using person = await openPerson();
  await using foreign = await openForeign();
  const { page } = person;
  await page.goto(foreign.url);
  const opened = page.waitForEvent('popup');
  await page.evaluate(`globalThis.opened = window.open('${stack.url}/console'); 0`);
  const popup = await opened;
  await popup.waitForLoadState();
  await until(() => page.evaluate<boolean>('opened.closed'));
  assert.is(await popup.evaluate('window.opener'), null);
});

test('the service ends', () => shared.end());

test.run();
