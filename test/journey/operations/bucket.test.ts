/**
 * The whole service with its files in a real S3 server: recordings, downloads and uploads, a bucket
 * that is away while a session runs, and a runner that is killed then.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Browserbase, { toFile } from '@browserbasehq/sdk';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot } from '../../support/service/stack.ts';
import { sized } from '../../support/whole.ts';

const journey = suite('journey/operations/bucket');
/** Of the bucket, after the service has noticed it. */
const OUTAGE_MS = sized(0, 60_000);
const server = await startS3();
const place = await server.bucket();
const stack = await boot({ env: { ...server.settings(place), TABERN_SESSION_GRACE_MS: '200' } });

type Download = { filename: string; size: number; checksum: string; id: string };
type Recorded = { downloads: { status: string; downloadUrl?: string }[] };

const client = new Browserbase({ apiKey: stack.apiKey, baseURL: stack.url });
const hash = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
const firstPage = (browser: Browser): Page => must(browser.contexts()[0]?.pages()[0], 'page');

async function download(page: Page, name: string, bytes: number): Promise<void> {
  const begun = page.waitForEvent('download');
  await page.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['${name}'.repeat(${bytes})]));
    link.download = '${name}';
    link.click();
  })()`);
  await begun;
}

async function ended(id: string): Promise<string> {
  return await until(async () => {
    const { status } = await client.sessions.retrieve(id);
    return status !== 'RUNNING' && status !== 'PENDING' && status;
  });
}

async function downloadsOf(id: string): Promise<Download[]> {
  const { downloads } = await stack.call<{ downloads: Download[] }>(
    `/v1/downloads?sessionId=${id}`,
  );
  return downloads;
}

/** The video of the session's only page. */
async function videoOf(id: string): Promise<Buffer> {
  const path = `/v1/sessions/${id}/recording/downloads`;
  await stack.call(path, { method: 'POST' });
  const url = await until(async () => {
    const { downloads } = await stack.call<Recorded>(path);
    return downloads.length > 0 && downloads[0]?.status === 'COMPLETED' && downloads[0].downloadUrl;
  });
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}

async function readiness(): Promise<string> {
  const answer = await stack.fetch('/readyz');
  return `${answer.status} ${JSON.stringify(await answer.json())}`;
}

journey('recordings, downloads and extensions are objects, and no files', async () => {
  await using site = await startSite();
  const zip = await toFile(await zipOf({ 'manifest.json': manifest() }), 'own.zip');
  const extension = await client.extensions.create({ file: zip });
  const session = await client.sessions.create({
    projectId: stack.projectId,
    extensionId: extension.id,
  });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = firstPage(browser);
  await page.goto(site.url);
  await download(page, 'small.txt', 1);
  await download(page, 'large.txt', 800_000); // two parts
  await page.waitForTimeout(1_000);
  await browser.close();
  is(await ended(session.id), 'COMPLETED');
  const found = (await downloadsOf(session.id)).map(({ filename, checksum }) => [
    filename,
    checksum,
  ]);
  const expected = [
    ['large.txt', hash('large.txt'.repeat(800_000))],
    ['small.txt', hash('small.txt')],
  ];
  equal(found.sort(), expected);
  const [{ id = '' } = {}] = await downloadsOf(session.id);
  const bytes = await stack.fetch(`/v1/downloads/${id}`, {
    headers: { accept: 'application/octet-stream' },
  });
  ok(bytes.ok);
  is((await bytes.arrayBuffer()).byteLength > 0, true);
  match((await videoOf(session.id)).subarray(4, 8).toString(), /ftyp/);
  for (const dir of stack.stored.directories()) {
    is(existsSync(join(dir, 'blobs')), false);
    const spool = join(dir, 'spool'); // of a core
    equal(existsSync(spool) ? readdirSync(spool) : [], []);
  }
  const kept = await objects();
  await stack.fetch(`/v1/downloads/${id}`, { method: 'DELETE' });
  await until(async () => (await objects()) === kept - 1);
});

journey('a bucket that is away under a live session loses nothing, and is named', async () => {
  await using site = await startSite();
  const session = await client.sessions.create({ projectId: stack.projectId });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = firstPage(browser);
  await page.goto(site.url);
  server.pause();
  try {
    await download(page, 'away.txt', 1);
    await until(async () => /^503 .*TABERN_BLOBS_ENDPOINT/.test(await readiness()));
    await download(page, 'later.txt', 800_000);
    await pause(OUTAGE_MS);
    is(await page.evaluate('1 + 1'), 2, 'the session goes on');
    is((await client.sessions.retrieve(session.id)).status, 'RUNNING');
    equal(await downloadsOf(session.id), []);
    await browser.close();
  } finally {
    server.resume();
  }
  is(await ended(session.id), 'COMPLETED');
  const names = (await downloadsOf(session.id)).map(({ filename, size }) => [filename, size]);
  equal(names.sort(), [
    ['away.txt', 8],
    ['later.txt', 9 * 800_000],
  ]);
  match((await videoOf(session.id)).subarray(4, 8).toString(), /ftyp/);
  await until(async () => /^200 /.test(await readiness()));
});

journey('a runner killed with uploads in progress leaves no row without bytes', async () => {
  await using site = await startSite();
  const session = await client.sessions.create({ projectId: stack.projectId });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await firstPage(browser).goto(site.url);
  server.pause();
  try {
    await download(firstPage(browser), 'lost.txt', 800_000);
    const pid = await stack.runnerPid(session.id);
    process.kill(pid, 'SIGKILL');
    await until(async () => !(await stack.pidsOf('runner')).includes(pid));
  } finally {
    server.resume();
  }
  is(await ended(session.id), 'ERROR');
  equal(await downloadsOf(session.id), [], 'no row without its bytes');
  await browser.close().catch(() => undefined);
  const next = await client.sessions.create({ projectId: stack.projectId });
  const again = await chromium.connectOverCDP(next.connectUrl);
  await firstPage(again).goto(site.url);
  await download(firstPage(again), 'next.txt', 1);
  await again.close();
  is(await ended(next.id), 'COMPLETED');
  equal(
    (await downloadsOf(next.id)).map(({ filename }) => filename),
    ['next.txt'],
  );
});

journey('stops, and nothing is left', async () => {
  await stack[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

journey.run();

async function objects(): Promise<number> {
  using bucket = openBucket(place);
  return (await bucket.list('')).items.length;
}
