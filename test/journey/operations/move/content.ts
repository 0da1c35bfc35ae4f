/** What a service has before a move: at least one object of each kind, made over REST. */
import { type Browser, chromium, type Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../../support/clients/functions.ts';
import { DRAW, END_LIMIT_MS } from '../../../support/clients/live.ts';
import { sealedFor } from '../../../support/clients/seal.ts';
import { until } from '../../../support/poll.ts';
import { manifest, zipOf } from '../../../support/runner/zips.ts';
import { authority } from '../../../support/servers/certificates.ts';
import type { Receiver } from '../../../support/servers/receiver.ts';
import type { Stack } from '../../../support/service/stack.ts';

type Made = { id: string };
type Session = Made & { status: string; connectUrl: string; endReason?: string };

const PROJECT = {
  'package.json': '{"name":"moved","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('good', async (ctx, params) => {
  console.log('seen', params);
  return { params, text: 'é\\u{1f600}' };
});
defineFn('bad', async () => {
  console.error('about to fail');
  throw new Error('it was asked to fail');
});
`,
};

/** Paths of GET requests whose answers are the same at any time from now on. */
export async function fill(stack: Stack, site: string, receiver: Receiver): Promise<string[]> {
  const hook = await stack.call<Made>('/v1/webhooks', {
    json: {
      endpoint: `${receiver.url}/hook`,
      eventTypes: ['functions.invocations.completed', 'functions.invocations.failed'],
    },
  });
  const own = `/v1/projects/${stack.projectId}`;
  return [
    ...['/v1/projects', own, `${own}/usage`],
    ...(await session(stack, site)),
    ...(await functions(stack)),
    ...(await settings(stack)),
    ...(await webhook(stack, hook)),
    `/v1/sessions/${hook.id}`, // no such one
  ];
}

const firstPage = (browser: Browser): Page => must(browser.contexts()[0]?.pages()[0], 'a page');

/** A recorded session with a context, files and a handoff, which has ended. */
async function session(stack: Stack, site: string): Promise<string[]> {
  const context = await stack.call<Made>('/v1/contexts', { json: { name: 'shop' } });
  const unused = await stack.call<Made>('/v1/contexts', { json: {} });
  const browserSettings = { context: { id: context.id, persist: true } };
  const json = { browserSettings, userMetadata: { shop: 'é' }, labels: ['nightly'] };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
  const path = `/v1/sessions/${id}`;
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = firstPage(browser);
  await page.goto(site);
  await page.evaluate(DRAW);
  await download(page);
  await upload(stack, path);
  const help = { json: { instructions: 'help' } };
  const { id: handoff } = await stack.call<Made>(`${path}/handoffs`, help);
  await stack.call(`${path}/handoffs/${handoff}/complete`, { method: 'POST' });
  await browser.close();
  const { status, endReason } = await until(async () => {
    const one = await stack.call<Session>(path);
    return one.status !== 'RUNNING' && one;
  }, END_LIMIT_MS);
  assert.is(status, 'COMPLETED', endReason);
  type Downloads = { downloads: Made[] };
  const { downloads } = await stack.call<Downloads>(`/v1/downloads?sessionId=${id}`);
  return [
    ...['', '/logs', '/recording', '/replays', '/handoffs', '/debug', '/downloads'].map(
      (name) => path + name,
    ),
    `${path}/handoffs/${handoff}`,
    ...(await videoParts(stack, path)),
    ...['/v1/sessions', '/v1/sessions?status=COMPLETED', '/v1/sessions?status=RUNNING'],
    ...['/v1/contexts', `/v1/contexts/${context.id}`, `/v1/contexts/${unused.id}`],
    `/v1/downloads?sessionId=${id}`,
    `/v1/downloads/${must(downloads[0], 'a download').id}`,
  ];
}

async function download(page: Page): Promise<void> {
  const begun = page.waitForEvent('download');
  await page.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['a,b'.repeat(100_000)]));
    link.download = 'invoice.csv';
    link.click();
  })()`);
  await (await begun).path();
}

async function upload(stack: Stack, path: string): Promise<void> {
  const body = new FormData();
  body.set('file', new Blob(['a text']), 'a.txt');
  await stack.call(`${path}/uploads`, { method: 'POST', body });
}

/** Signed links of the playlist and of the download, which stay as they are. */
async function videoParts(stack: Stack, path: string): Promise<string[]> {
  const file = `${path}/recording/downloads`;
  await stack.call(file, { method: 'POST' });
  type Answer = { downloads: { downloadUrl?: string }[] };
  const link = await until(async () => (await stack.call<Answer>(file)).downloads[0]?.downloadUrl);
  const playlist = await (await stack.fetch(`${path}/replays/0`)).text();
  const parts = [...playlist.matchAll(/https?:\S+[^"\s]/g)].map(([url]) => url);
  return [link, ...parts].map((url) => {
    const { pathname, search } = new URL(url);
    return pathname + search;
  });
}

/** Two functions, published twice, and an invocation of each. */
async function functions(stack: Stack): Promise<string[]> {
  await publish(stack, PROJECT);
  const ids = await publish(stack, PROJECT);
  const { good = '', bad = '' } = ids;
  const runs = [await invoke(stack, good, { n: 1 }), await invoke(stack, bad)];
  for (const { id } of runs) await ended(stack, id);
  const builds = await stack.call<{ data: Made[] }>('/v1/functions/builds');
  const build = must(builds.data[0], 'a build').id;
  const { results } = await stack.call<{ results: Made[] }>(`/v1/functions/${good}/versions`);
  const version = `/v1/functions/versions/${must(results[0], 'a version').id}`;
  const cron = { json: { cron: '0 9 1 1 *', params: { of: 'a year' } } };
  const schedule = await stack.call<Made>(`/v1/functions/${good}/schedules`, cron);
  return [
    ...['/v1/functions', '/v1/functions/builds'],
    ...[`/v1/functions/builds/${build}`, `/v1/functions/builds/${build}/logs`],
    ...[good, bad].flatMap((id) => [`/v1/functions/${id}`, `/v1/functions/${id}/versions`]),
    ...[version, `${version}/invocations`],
    ...runs.flatMap(({ id, sessionId }) => [
      `/v1/functions/invocations/${id}`,
      `/v1/functions/invocations/${id}/logs`,
      `/v1/sessions/${sessionId}`,
      `/v1/sessions/${sessionId}/logs`,
    ]),
    ...[`/v1/functions/${good}/schedules`, `/v1/functions/schedules/${schedule.id}`],
    `/v1/functions/${good}/secrets`,
  ];
}

/** Files and values of the project, of no session. */
async function settings(stack: Stack): Promise<string[]> {
  const store = async (path: string, bytes: string | Uint8Array<ArrayBuffer>, name: string) => {
    const body = new FormData();
    body.set('file', new Blob([bytes]), name);
    const { id } = await stack.call<Made>(path, { method: 'POST', body });
    return `${path}/${id}`;
  };
  const zip = new Uint8Array(await zipOf({ 'manifest.json': manifest() }));
  type Pair = Made & { publicKey: string };
  const pair = await stack.call<Pair>('/v1/secrets/keypair');
  const sealed = { ...sealedFor(pair, 'a value'), secretKey: 'TOKEN' };
  const secret = await stack.call<Made>('/v1/secrets', { json: sealed });
  return [
    await store('/v1/extensions', zip, 'own.zip'),
    await store('/v1/certificates', (await authority()).cert, 'ca.pem'),
    ...['/v1/certificates', '/v1/labels', '/v1/secrets', `/v1/secrets/${secret.id}`],
    '/v1/secrets/keypair',
  ];
}

/** With the deliveries of both invocations. */
async function webhook(stack: Stack, { id }: Made): Promise<string[]> {
  const path = `/v1/webhooks/${id}`;
  type Deliveries = { data: (Made & { status: string })[] };
  const delivered = await until(async () => {
    const { data } = await stack.call<Deliveries>(`${path}/deliveries`);
    return data.length === 2 && data.every(({ status }) => status === 'DELIVERED') && data;
  });
  const each = delivered.map((one) => `${path}/deliveries/${one.id}`);
  return ['/v1/webhooks', path, `${path}/deliveries`, ...each];
}
