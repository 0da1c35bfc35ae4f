/** A backup during a driven session; the restored service serves the same objects. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { DRAW } from '../../support/clients/live.ts';
import { openJudged } from '../../support/judge/judged.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startSite } from '../../support/servers/site.ts';
import { tabern } from '../../support/service/command.ts';
import { endService, startService } from '../../support/service/serve.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/operations/backup');
const STOP_LIMIT_MS = 60_000;
const env = { TABERN_SESSION_GRACE_MS: '200' };

type Replays = { pages: { pageId: string }[] };

/** An ended session with a video; returns its id. */
async function recorded(stack: Stack, url: string): Promise<string> {
  type Session = { id: string; connectUrl: string; status: string };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  await page.goto(url);
  await page.evaluate(DRAW);
  await browser.close();
  await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status === 'COMPLETED';
  });
  await until(async () => {
    const { pages } = await stack.call<Replays>(`/v1/sessions/${id}/replays`);
    return pages.length > 0;
  });
  return id;
}

/** The bytes of the first part of a page's video, by its playlist. */
async function videoOf(url: string, apiKey: string, id: string): Promise<Buffer> {
  const headers = { 'x-svc-api-key': apiKey };
  const playlist = await fetch(`${url}/v1/sessions/${id}/replays/0`, { headers });
  is(playlist.status, 200);
  const part = must(/URI="([^"]+)"/.exec(await playlist.text())?.[1], 'a part');
  const { pathname, search } = new URL(part, url);
  const answer = await fetch(url + pathname + search);
  is(answer.status, 200);
  return Buffer.from(await answer.arrayBuffer());
}

journey('a restore has the sessions, videos, contexts and webhooks, byte for byte', async () => {
  await using site = await startSite();
  await using stack = await boot({ env });
  const id = await recorded(stack, site.url);
  const context = await stack.call<{ id: string }>('/v1/contexts', { json: { name: 'shop' } });
  const endpoint = 'https://127.0.0.1:9/hook';
  const eventTypes = ['functions.invocations.completed'];
  const hook = await stack.call<{ id: string }>('/v1/webhooks', { json: { endpoint, eventTypes } });
  const paths = [
    `/v1/sessions/${id}`,
    `/v1/sessions/${id}/logs`,
    `/v1/contexts/${context.id}`,
    `/v1/webhooks/${hook.id}`,
    '/v1/projects',
  ];
  const before = await Promise.all(paths.map((path) => stack.call<unknown>(path)));
  const video = await videoOf(stack.url, stack.apiKey, id);
  ok(video.length > 0);

  await using dir = tempDirectory();
  const file = join(dir.path, 'backup.tar');
  const taken = await tabern(['backup', file, '--with-keys', '--data', stack.dataDir]).ended;
  is(taken.code, 0, taken.err);
  const dataDir = join(dir.path, 'restored');
  const restored = await tabern(['restore', file, '--data', dataDir]).ended;
  is(restored.code, 0, restored.err);

  const tempPath = join(dir.path, 'tmp');
  mkdirSync(tempPath);
  const service = await startService({
    TMPDIR: tempPath,
    TABERN_DATA: dataDir,
    TABERN_PORT: String(await freePort()),
    TABERN_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  });
  try {
    await using proxied = await openJudged(service.url);
    const headers = { 'x-svc-api-key': stack.apiKey };
    const after = await Promise.all(
      paths.map(async (path) => (await fetch(proxied.url + path, { headers })).json()),
    );
    equal(after, before);
    ok((await videoOf(proxied.url, stack.apiKey, id)).equals(video));
    const path = `/v1/webhooks/${hook.id}/secret`;
    const rotated = await fetch(proxied.url + path, { method: 'POST', headers });
    is(rotated.status, 200, 'its secrets open');
  } finally {
    await endService(service, 'SIGTERM', STOP_LIMIT_MS);
  }
});

journey.run();
