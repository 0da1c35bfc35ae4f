/** One-shots over REST with real browsers: each route, its rules, and pages that fail. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { keyOfNewProject } from '../../support/clients/second-tenant.ts';
import { until } from '../../support/poll.ts';
import { selfSigned } from '../../support/servers/certificates.ts';
import { type Pages, startPages } from '../../support/servers/pages.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/functions/one-shots');
const service = shareStack({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });

type Page = { url: string; title: string; status?: number };
type Session = { id: string; status: string; userMetadata?: object; endedAt?: string };

function shoot(stack: Stack, what: string, json: object, init: RequestInit = {}) {
  return stack.fetch(`/v1/${what}`, { ...init, json });
}

/** As JSON; throws when the status is not 200. */
async function asJson<T>(stack: Stack, what: string, json: object): Promise<T & { page: Page }> {
  const headers = { accept: 'application/json' };
  return await stack.call(`/v1/${what}`, { headers, json });
}

async function textOf(stack: Stack, json: object): Promise<string> {
  const answer = await shoot(stack, 'content', json);
  const text = await answer.text();
  is(answer.status, 200, text);
  return text;
}

/** Status and message of a refusal. */
async function refused(stack: Stack, what: string, json: object): Promise<string> {
  const answer = await shoot(stack, what, json);
  const { statusCode, message } = (await answer.json()) as { statusCode: number; message: string };
  is(answer.status, statusCode);
  return `${statusCode} ${message}`;
}

/** Width and height of a PNG. */
function sizeOf(png: Buffer): [number, number] {
  return [png.readUInt32BE(16), png.readUInt32BE(20)];
}

async function picture(stack: Stack, json: object): Promise<Buffer> {
  const answer = await shoot(stack, 'screenshot', json);
  const bytes = Buffer.from(await answer.arrayBuffer());
  is(answer.status, 200, bytes.toString());
  return bytes;
}

async function setUp(): Promise<{ stack: Stack; pages: Pages }> {
  return { stack: await service.get(), pages: await startPages() };
}

journey('a screenshot is the picture itself, or JSON where that alone is accepted', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const viewport = { width: 500, height: 300, deviceScaleFactor: 2 };
  const answer = await shoot(stack, 'screenshot', { url: `${pages.url}/moved`, viewport });
  const { headers } = answer;
  equal(
    ['content-type', 'x-page-status', 'vary'].map((name) => headers.get(name)),
    ['image/png', '200', 'accept'],
  );
  equal(sizeOf(Buffer.from(await answer.arrayBuffer())), [1000, 600]);
  const session = await stack.call<Session>(`/v1/sessions/${headers.get('x-session-id')}`);
  equal(session.userMetadata, { oneShot: 'screenshot' });
  type Json = { sessionId: string; contentType: string; data: string };
  const json = { url: `${pages.url}/moved`, format: 'jpeg', quality: 40 };
  const shown = await asJson<Json>(stack, 'screenshot', json);
  equal(shown.page, { url: `${pages.url}/rooms`, title: 'Rooms', status: 200 });
  is(shown.contentType, 'image/jpeg');
  is(Buffer.from(shown.data, 'base64').toString('hex', 0, 3), 'ffd8ff');
});

journey('a screenshot shows the viewport, the whole page, or one element', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const url = `${pages.url}/tall`;
  equal(sizeOf(await picture(stack, { url })), [1280, 720]);
  equal(sizeOf(await picture(stack, { url, fullPage: true })), [1280, 3000]);
  const html = '<body style="margin:900px 0 0"><p id=a style="margin:0;width:70px;height:30px">';
  equal(sizeOf(await picture(stack, { html, selector: '#a' })), [70, 30]);
  const webp = await picture(stack, { html, format: 'webp' });
  is(webp.toString('latin1', 8, 12), 'WEBP');
});

journey('the page gets cookies, headers, a user agent and a viewport', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const text = await textOf(stack, {
    url: `${pages.url}/echo`,
    selector: 'pre',
    cookies: [{ name: 'table', value: 'seven', httpOnly: true }],
    headers: { 'x-guest': 'yes' },
    userAgent: 'Guest/1.0',
  });
  for (const part of ['"cookie":"table=seven"', '"x-guest":"yes"', '"user-agent":"Guest/1.0"']) {
    ok(text.includes(part), `${part} in ${text}`);
  }
  const html = '<p></p><script>document.querySelector("p").textContent=innerWidth</script>';
  const narrow = { width: 321, height: 200 };
  is(await textOf(stack, { html, selector: 'p', viewport: narrow }), '<p>321</p>');
});

journey('the content is what scripts have made, after the conditions of the request', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const url = `${pages.url}/late`;
  ok(!(await textOf(stack, { url, waitUntil: 'domcontentloaded' })).includes('id="late"'));
  ok((await textOf(stack, { url, waitForSelector: '#late' })).includes('id="late"'));
  ok((await textOf(stack, { url, waitUntil: 'networkidle' })).includes('id="late"'));
  const answer = await shoot(stack, 'content', { url });
  is(answer.headers.get('content-security-policy'), 'sandbox');
  match(await answer.text(), /^<!DOCTYPE html><html>/);
});

journey('links are absolute, in the order of the page', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  type Links = { links: { url: string; text: string }[] };
  const { links } = await asJson<Links>(stack, 'links', { url: pages.url });
  equal(links, [{ url: `${pages.url}/rooms`, text: 'Rooms' }]);
  const html = '<a href="https://a.example/"> A\n\tB </a><p><a href="javascript:x">no</a></p>';
  const all = await asJson<Links>(stack, 'links', { html });
  equal(all.links, [{ url: 'https://a.example/', text: 'A B' }]);
  equal((await asJson<Links>(stack, 'links', { html, selector: 'p' })).links, []);
});

journey('a page is printed on the paper and the pages of the request', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const request = { url: `${pages.url}/tall`, format: 'a5', landscape: true, margins: { top: 0 } };
  const whole = await shoot(stack, 'pdf', { ...request, printBackground: true });
  is(whole.headers.get('content-type'), 'application/pdf');
  const file = Buffer.from(await whole.arrayBuffer()).toString('latin1');
  is(file.slice(0, 5), '%PDF-');
  const box = /\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/.exec(file) ?? [];
  ok(Number(box[1]) > Number(box[2]), String(box[0]));
  const sheets = (text: string) => text.match(/\/Type \/Page\b/g)?.length ?? 0;
  ok(sheets(file) > 1);
  const first = await shoot(stack, 'pdf', { ...request, pageRanges: '1' });
  is(sheets(Buffer.from(await first.arrayBuffer()).toString('latin1')), 1);
  is(
    await refused(stack, 'pdf', { ...request, pageRanges: '900' }),
    '400 `pageRanges` names no page of the document.',
  );
});

journey('a status of the page is no error, and a dialog does not stop it', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const missing = await shoot(stack, 'content', { url: `${pages.url}/missing` });
  equal([missing.status, missing.headers.get('x-page-status')], [200, '404']);
  match(await missing.text(), /not here/);
  match(await textOf(stack, { url: `${pages.url}/dialog` }), /after/);
});

journey('a page that cannot be loaded is a 502 with its reason', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const { url } = pages;
  const { key, cert } = await selfSigned();
  const secured = createServer({ key, cert }).listen(0, '127.0.0.1');
  using _closed = { [Symbol.dispose]: () => void secured.close() };
  const secure = await until(() => (secured.address() as AddressInfo | null)?.port);
  const failures: [string, RegExp][] = [
    ['http://nothing.invalid/', /^502 .*DNS.*NAME_NOT_RESOLVED/],
    [`https://127.0.0.1:${secure}/`, /^502 .*certificate.*CERT_AUTHORITY_INVALID/],
    [`${url}/loop`, /^502 .*redirects too often/],
    [`${url}/download`, /^502 .*download/],
    [`${url}/empty`, /^502 .*no content/],
    [`${url}/crash`, /^502 .*EMPTY_RESPONSE/],
  ];
  for (const [address, says] of failures) {
    match(await refused(stack, 'content', { url: address }), says);
  }
  secured.close();
  const closes = { html: '<script>window.close()</script>', timeout: 5 };
  match(await refused(stack, 'content', closes), /^502 The page closed itself/);
  match(
    await refused(stack, 'content', { url: `https://127.0.0.1:${secure}/` }),
    /^502 .*refused the connection/,
  );
});

journey('a private address is a 403 that names the setting, also behind a redirect', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const says = /TABERN_BROWSER_ALLOW_CIDRS/;
  match(await refused(stack, 'screenshot', { url: 'http://10.1.2.3/' }), /^403 /);
  match(await refused(stack, 'screenshot', { url: 'http://10.1.2.3/' }), says);
  match(await refused(stack, 'screenshot', { url: 'http://[::1]/' }), /^403 /);
  for (const [what, json] of [
    ['screenshot', { url: `${pages.url}/inside` }],
    ['fetch', { url: `${pages.url}/inside`, allowRedirects: true }],
  ] as const) {
    const behind = await refused(stack, what, json);
    match(behind, /^403 /);
    match(behind, says);
  }
});

journey('a page that does not load ends at its time, with what was seen', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  // enough for what is seen of a page on a busy machine
  const end = (path: string, more = {}) =>
    refused(stack, 'content', { url: pages.url + path, timeout: 10, ...more });
  match(await end('/silent', { timeout: 1 }), /^504 .*its first answer within \d+ s/);
  const endless = await end('/endless');
  match(endless, /^504 The page did not reach "load" within \d+ s; seen so far: address http/);
  match(endless, /\/endless, status 200, title "Endless"\.$/);
  match(await end('/', { waitForSelector: '#never' }), /^504 .*matches "#never".*title "The inn"/);
  match(await end('/hangs'), /^504 .*title "Hangs"/);
});

journey('an answer above its limit is refused with what to do', async () => {
  const stack = await service.get();
  const tall = '<body style="margin:0"><div style="height:40000px">';
  const wide = await refused(stack, 'screenshot', { html: tall, fullPage: true });
  match(wide, /^502 The picture has 1280 x 40000 pixels; .*16384: leave fullPage out/);
  const long = '<script>document.write("x".repeat(6<<20))</script>';
  match(
    await refused(stack, 'content', { html: long, timeout: 60 }),
    /^502 .*the limit is 5242880/,
  );
});

journey('a wrong request is a 400 that names its field', async () => {
  const stack = await service.get();
  const url = 'http://127.0.0.1/';
  const wrong: [string, object, RegExp][] = [
    ['screenshot', {}, /`url` or `html` is required/],
    ['screenshot', { url, html: '<p>' }, /`url` or `html` is required/],
    ['screenshot', { url, more: 1 }, /`more` is not a known field/],
    ['screenshot', { url, viewport: { depth: 1 } }, /`viewport.depth` is not a known field/],
    ['screenshot', { url: 'file:///etc/passwd' }, /`url` must be an http or https URL/],
    ['screenshot', { url: 'javascript:1' }, /`url` must be an http or https URL/],
    ['screenshot', { url: 'chrome://version' }, /`url` must be an http or https URL/],
    ['screenshot', { url: 'http://a:b@127.0.0.1/' }, /`url` must have no user/],
    ['content', { url, waitUntil: 'never' }, /`waitUntil` must be one of load/],
    ['content', { url, timeout: 61 }, /`timeout` must be 1 to 60 seconds/],
    ['content', { url, timeout: 0 }, /`timeout` must be 1 to 60 seconds/],
    ['content', { html: 'x'.repeat((128 << 10) + 1) }, /`html` must be at most 131072 bytes/],
    ['links', { url, headers: { 'bad name': 'x' } }, /`headers` has a name/],
    ['links', { url, headers: { ok: 'a\r\nb: c' } }, /`headers.ok` must be a string/],
    ['links', { html: 'x', cookies: [{ name: 'a', value: 'b' }] }, /`cookies\[0\].url`/],
    ['links', { url, cookies: [{ name: 'a', value: 'b', sameSite: 'x' }] }, /\[0\].sameSite`/],
    ['links', { url, proxies: [{ type: 'x' }] }, /`proxies\[0\].type` must be one of/],
    ['links', { url, viewport: { width: 9_000 } }, /`viewport.width` must be 1 to 4096/],
    ['screenshot', { url, format: 'gif' }, /`format` must be one of png, jpeg, webp/],
    ['screenshot', { url, quality: 5 }, /`quality` is for jpeg and webp/],
    ['screenshot', { url, selector: 'p', fullPage: true }, /`fullPage` and `selector`/],
    ['pdf', { url, format: 'a9' }, /`format` must be one of a4/],
    ['pdf', { url, margins: { top: 6 } }, /`margins.top` must be 0 to 5/],
    ['pdf', { url, pageRanges: 'all' }, /`pageRanges` must be a list of pages/],
  ];
  for (const [what, json, says] of wrong) {
    const text = await refused(stack, what, json);
    match(text, /^400 /);
    match(text, says);
  }
  const html = '<p>';
  const selector = (more: object) => refused(stack, 'content', { html, ...more });
  is(await selector({ selector: '[' }), '400 `selector` is not a CSS selector.');
  is(await selector({ selector: 'b' }), '400 `selector` matches no element of the page.');
  is(await selector({ waitForSelector: '[' }), '400 `waitForSelector` is not a CSS selector.');
});

journey('a one-shot leaves a session with its log, and no function', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const answer = await shoot(stack, 'content', { url: pages.url });
  await answer.text();
  const id = answer.headers.get('x-session-id');
  const logs = await stack.call<{ method: string }[]>(`/v1/sessions/${id}/logs`);
  ok(logs.some(({ method }) => method === 'Page.navigate'));
  equal((await stack.call<{ total: number }>('/v1/functions')).total, 0);
  const own = '00000000-0000-7000-8000-000000000001';
  for (const [path, init] of [
    [`/v1/functions/${own}`, {}],
    [`/v1/functions/${own}/versions`, {}],
    [`/v1/functions/${own}`, { method: 'DELETE' }],
    [`/v1/functions/${own}/invoke`, { json: {} }],
  ] as const) {
    is((await stack.fetch(path, init)).status, 404, path);
  }
  equal(await stack.call('/console/api/v1/invocations'), { invocations: [] });
  using operator = operatorOf(stack.dataDir);
  const { projects } = await operator.operators.listAllProjects({}, operator.options);
  is(projects.length, 1);
});

journey('a client that leaves cancels its one-shot', async () => {
  const { stack, pages } = await setUp();
  await using _ = pages;
  const leave = new AbortController();
  const request = { url: `${pages.url}/silent`, timeout: 60 };
  const left = shoot(stack, 'pdf', request, { signal: leave.signal }).catch(() => 'left');
  await until(() => pages.visits.includes('/silent'));
  leave.abort();
  is(await left, 'left');
  await until(async () => {
    const sessions = await stack.call<Session[]>('/v1/sessions');
    return sessions.every(({ endedAt }) => endedAt !== undefined);
  }, 30_000);
});

journey('a flood of one project leaves another its turn', async () => {
  await using pages = await startPages();
  await using stack = await boot({ env: { TABERN_INVOCATIONS_MAX: '2' } });
  const other = { 'x-svc-api-key': await keyOfNewProject(stack.dataDir) };
  let ended = 0;
  const runners = (await stack.pidsOf('runner')).length;
  const flood = Array.from({ length: 6 * runners }, async () => {
    await refused(stack, 'content', { url: `${pages.url}/silent`, timeout: 10 });
    ended += 1;
  });
  await until(() => pages.visits.includes('/silent'));
  const answer = await shoot(stack, 'content', { url: pages.url }, { headers: other });
  is(answer.status, 200, await answer.text());
  ok(ended < flood.length, `${ended} of the flood had ended before`);
  await Promise.all(flood);
  // nor does one find the other's session
  const { sessionId } = await asJson<{ sessionId: string }>(stack, 'links', { html: '<p>' });
  const path = `/v1/sessions/${sessionId}/logs`;
  is((await stack.fetch(path, { headers: other })).status, 404);
});

journey('ends the service', () => service.end());

journey.run();
