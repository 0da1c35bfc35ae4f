/** `POST /v1/fetch` by the published SDK, and `POST /v1/markdown`, with real browsers. */
import Client from '@browserbasehq/sdk';
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { startPages } from '../../support/servers/pages.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/functions/fetch');
const service = shareStack({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });

async function setUp() {
  const stack = await service.get();
  const client = new Client({ apiKey: stack.apiKey, baseURL: stack.url, maxRetries: 0 });
  return { stack, client, pages: await startPages() };
}

/** Status and message of the SDK's error. */
async function refusal(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'answered',
    (error: { status: number; message: string }) => `${error.status} ${error.message}`,
  );
}

async function markdown(stack: Stack, json: object): Promise<string> {
  const answer = await stack.fetch('/v1/markdown', { json });
  const text = await answer.text();
  is(answer.status, 200, text);
  is(answer.headers.get('content-type'), 'text/markdown; charset=utf-8');
  return text;
}

journey('a resource is returned as its server sends it, and no script of it runs', async () => {
  const { client, pages, stack } = await setUp();
  await using _ = pages;
  const late = await client.fetchAPI.create({ url: `${pages.url}/late` });
  equal([late.statusCode, late.contentType, late.encoding], [200, 'text/html', 'utf-8']);
  match(String(late.content), /^<!doctype html>.*<script>/s);
  const { method } = (
    await stack.call<{ method: string }[]>(`/v1/sessions/${late.id}/logs`)
  )[0] ?? {
    method: 'none',
  };
  not.equal(method, 'none');
  const json = await client.fetchAPI.create({ url: `${pages.url}/data.json` });
  equal([json.content, json.headers['x-own']], ['{"a":1}', 'yes']);
  const picture = await client.fetchAPI.create({ url: `${pages.url}/picture` });
  equal([picture.contentType, picture.encoding], ['image/gif', 'base64']);
  is(Buffer.from(String(picture.content), 'base64').toString('latin1'), 'GIF89a\xff');
  const file = await client.fetchAPI.create({ url: `${pages.url}/download` });
  is(Buffer.from(String(file.content), 'base64').toString(), 'bytes');
  is((await client.fetchAPI.create({ url: `${pages.url}/missing` })).statusCode, 404);
});

journey('a redirect is followed only when the request allows it', async () => {
  const { client, pages } = await setUp();
  await using _ = pages;
  const url = `${pages.url}/moved`;
  const stopped = await client.fetchAPI.create({ url });
  equal([stopped.statusCode, stopped.headers['location'], stopped.content], [302, '/rooms', '']);
  ok(!pages.visits.includes('/rooms'));
  const followed = await client.fetchAPI.create({ url, allowRedirects: true });
  match(String(followed.content), /rooms/);
  const loop = client.fetchAPI.create({ url: `${pages.url}/loop`, allowRedirects: true });
  match(await refusal(loop), /^502 .*redirects too often/);
});

journey('a fetch that fails names its reason', async () => {
  const { client, pages } = await setUp();
  await using _ = pages;
  const fetch = (url: string, more = {}) => refusal(client.fetchAPI.create({ url, ...more }));
  match(await fetch('http://10.1.2.3/'), /^403 .*TABERN_BROWSER_ALLOW_CIDRS/);
  match(await fetch('http://nothing.invalid/'), /^502 .*DNS/);
  match(await fetch(`${pages.url}/large`), /^502 .*larger than 4194304 bytes/);
  match(await fetch(`${pages.url}/crash`), /^502 /);
  match(await fetch('file:///etc/passwd'), /^400 .*`url` must be an http or https URL/);
  match(await fetch(pages.url, { format: 'xml' }), /^400 .*`format` must be one of raw, markdown/);
  match(await fetch(pages.url, { schema: {} }), /^400 .*`schema` is for the format json/);
  match(await fetch(pages.url, { format: 'json', schema: {} }), /^501 .*json is not served here/);
});

journey('HTML becomes markdown: an article of a page, or all of it', async () => {
  const { client, pages, stack } = await setUp();
  await using _ = pages;
  const words = 'A room has a bed, a table and a window to the yard. '.repeat(12);
  const code = '<pre><code>a\nb</code></pre>';
  const article = `<p>${words}</p><p>See <a href="/rooms/1">room 1</a>.</p>${code}`;
  const html = `<title>Rooms</title><nav><a href="/x">menu</a></nav>
    <article><h2>Beds</h2>${article}<ul><li>one</li></ul></article><script>1</script>`;
  const text = await markdown(stack, { html });
  match(text, /^# Rooms/);
  match(text, /## Beds/);
  match(text, /```\na\nb\n```/);
  ok(!text.includes('menu'));
  is(await markdown(stack, { html: '<p id=a>a <b>b</b></p><p>c', selector: '#a' }), 'a **b**');
  is(await markdown(stack, { html: '<p>short' }), 'short');
  const page = await client.fetchAPI.create({ url: pages.url, format: 'markdown' });
  equal([page.contentType, page.statusCode], ['text/markdown', 200]);
  match(String(page.content), new RegExp(`\\[Rooms\\]\\(${pages.url}/rooms\\)`));
  const json = await client.fetchAPI.create({ url: `${pages.url}/data.json`, format: 'markdown' });
  equal([json.contentType, json.content], ['application/json', '{"a":1}']);
});

journey('a hostile page ends its own request alone', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const nested = '<script>document.write("<div>".repeat(1e6))</script>';
  const answers = await Promise.all(
    [
      { html: nested, timeout: 20 },
      { url: `${pages.url}/endless`, timeout: 2 },
      { html: '<script>document.write("x".repeat(3<<20))</script>' },
    ].map(async (json) => {
      const answer = await stack.fetch('/v1/markdown', { json });
      return `${answer.status} ${await answer.text()}`;
    }),
  );
  match(answers[0] ?? '', /^(502|504) /);
  match(answers[1] ?? '', /^504 .*Endless/);
  match(answers[2] ?? '', /^502 .*the limit for markdown is 2097152/);
  is(await markdown(stack, { html: '<p>after' }), 'after');
});

journey('a search is made by the operator’s engine, and is a 501 without one', async () => {
  const { client, pages } = await setUp();
  await using _ = pages;
  match(await refusal(client.search.web({ query: 'inn' })), /^501 .*TABERN_SEARCH_URL/);
  await using stack = await boot({ env: { TABERN_SEARCH_URL: `${pages.url}/engine` } });
  const searching = new Client({ apiKey: stack.apiKey, baseURL: stack.url, maxRetries: 0 });
  const { query, results } = await searching.search.web({ query: 'inn', numResults: 1 });
  equal([query, results.map(({ title }) => title)], ['inn', ['The inn']]);
});

journey('ends the service', () => service.end());

journey.run();
