/**
 * `node test/journey/console/looks/write-data.ts`: writes data.tar.gz, the data directory of a
 * service with two weeks of work: functions of which one fails, sessions with recordings, logs and
 * a download, a context, a webhook whose endpoint failed for a day. Pictures are compared with
 * this data, so they are written again afterwards (write-pictures.ts).
 */
import { cpSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import Sqlite from 'better-sqlite3';
import { type Browser, chromium } from 'playwright-core';
import { create } from 'tar';
import { must } from '../../../../proto/common/must.ts';
import { sealedText } from '../../../support/clients/contexts.ts';
import { ended, invoke, publish } from '../../../support/clients/functions.ts';
import { until } from '../../../support/poll.ts';
import { startReceiver } from '../../../support/servers/receiver.ts';
import type { Stack } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { bootAt, DATA, NOW } from './scene.ts';

const DAY_MS = 86_400_000;
/** Days and runs of the function that succeeds and of the one that fails. */
const DAYS = [
  { days: 13, runs: 4, failures: 0 },
  { days: 9, runs: 6, failures: 1 },
  { days: 6, runs: 3, failures: 2 },
  { days: 3, runs: 8, failures: 0 },
  { days: 1, runs: 5, failures: 1 },
  { days: 0, runs: 4, failures: 2 },
];
/** The endpoint of the webhook fails on this day. */
const FAILING_DAY = 6;
/** What is newest is this old. */
const AGE_MS = 40 * 60_000;
/** Later than all times of the data. */
const LATER = NOW + DAY_MS;
const TYPES = ['functions.invocations.completed', 'functions.invocations.failed'];
/** In the order of the visit. */
const ORDER = ['Assam', 'Darjeeling', 'Sencha'];
const SHOP = `<!doctype html><title>Tea shop</title>
<style>
  body { font: 20px "Liberation Sans"; margin: 40px; color: #223 }
  li { margin: 12px 0 } button { font: inherit; padding: 8px 16px }
</style>
<h1>Tea shop</h1>
<ul>${ORDER.map((name) => `<li><button>${name}</button>`).join('')}</ul>
<a href="data:text/csv,tea;price%0Aassam;6.20" download="prices.csv">Prices</a>
<script>
  console.info('the basket is empty');
  for (const one of document.querySelectorAll('button')) one.onclick = async () => {
    const { ok } = await fetch('/basket/' + one.textContent, { method: 'POST' });
    if (!ok) console.error(one.textContent + ' is sold out');
  };
</script>`;
const PROJECT = {
  'package.json': '{"name":"shop","version":"1.0.0","type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
const parametersSchema = {
  type: 'object',
  properties: {
    tea: { type: 'string', enum: ['assam', 'darjeeling', 'sencha'] },
    grams: { type: 'integer', minimum: 50, default: 100 },
  },
  required: ['tea'],
};
defineFn('prices', async () => {
  console.log('reading the price list');
  return { assam: 6.2, darjeeling: 8.4, sencha: 7.1 };
});
defineFn('order', async (ctx, params) => {
  console.log('ordering', params.grams, 'g of', params.tea);
  console.warn('the basket is nearly full');
  throw new Error('the shop is closed');
}, { parametersSchema });`,
};

type Session = { id: string; connectUrl: string; endedAt?: string };
type Chunk = { session_id: string; number: number; entries: Buffer };

await using shop = createServer((request, response) => {
  response.statusCode = request.url?.startsWith('/basket/Sencha') ? 503 : 200;
  response.setHeader('content-type', 'text/html').end(request.method === 'GET' ? SHOP : 'done');
}).listen(0, '127.0.0.1');
await using receiver = await startReceiver();
await using kept = tempDirectory();
const data = join(kept.path, 'data');
const ids = { prices: '', order: '' };

for (const [index, day] of DAYS.entries()) {
  const at = NOW - day.days * DAY_MS - AGE_MS;
  const before = index === 0 ? undefined : data;
  await using scene = await bootAt(at, before, { webhookCa: receiver.caPath });
  receiver.otherwise(() => (day.days === FAILING_DAY ? 503 : 200));
  if (index === 0) await prepare(scene.stack);
  await work(scene.stack, day);
  if (day.days === 0) await visits(scene.stack);
  await scene.stack.kill('SIGTERM');
  moveLogs(scene.stack.dataDir, scene.laterMs);
  rmSync(data, { recursive: true, force: true });
  cpSync(scene.stack.dataDir, data, { recursive: true });
}
await create({ cwd: data, gzip: { level: 9 }, portable: true, file: DATA }, ['.']);
process.exit();

/** Functions, a webhook and a context. */
async function prepare(stack: Stack): Promise<void> {
  Object.assign(ids, await publish(stack, PROJECT));
  const json = { endpoint: `${receiver.url}/events`, eventTypes: TYPES };
  await stack.call('/v1/webhooks', { json });
  const context = await stack.call<{ id: string; publicKey: string; uploadUrl: string }>(
    '/v1/contexts',
    { json: {} },
  );
  const body = new Uint8Array(await sealedText(context.publicKey, 'a login'));
  await fetch(context.uploadUrl, { method: 'PUT', body });
}

async function work(stack: Stack, { runs, failures }: (typeof DAYS)[number]): Promise<void> {
  const names = [
    ...Array.from({ length: runs }, () => 'prices' as const),
    ...Array.from({ length: failures }, () => 'order' as const),
  ];
  for (const name of names) {
    const params = name === 'order' ? { tea: 'sencha', grams: 100 } : {};
    const { id } = await invoke(stack, ids[name], params);
    await ended(stack, id);
  }
  type Listed = { deliveries: { status: string; attempts?: unknown[] }[] };
  await until(async () => {
    const { deliveries } = await stack.call<Listed>('/console/api/v1/deliveries?limit=50');
    return deliveries.every(({ status }) => status === 'SUCCEEDED') || receiver.requests.length > 0;
  });
}

/** Sessions of clients: the newest has a failed request, console lines and a download. */
async function visits(stack: Stack): Promise<void> {
  for (const order of ['4709', '4710', '4711']) {
    const json = { userMetadata: { customer: 'acme', order } };
    const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
    const browser = await chromium.connectOverCDP(connectUrl);
    await visit(browser);
    await browser.close();
    const isOver = async () => (await stack.call<Session>(`/v1/sessions/${id}`)).endedAt;
    await until(isOver);
  }
}

async function visit(browser: Browser): Promise<void> {
  const page = must(browser.contexts()[0]?.pages()[0], 'the page of the session');
  const address = shop.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  await page.goto(`http://127.0.0.1:${address.port}/`);
  for (const name of ORDER) {
    const answered = page.waitForResponse((one) => one.url().endsWith(name));
    await page.getByRole('button', { name }).click();
    await answered;
    await page.waitForTimeout(1_500);
  }
  const download = page.waitForEvent('download');
  await page.getByRole('link').click();
  await (await download).path().catch(() => undefined);
}

/**
 * The threads of sessions and the sandboxes of handlers have the machine's clock. Moves the times
 * of their log entries, those that are later than the pictures, back by so many milliseconds.
 */
function moveLogs(dataDir: string, byMs: number): void {
  using cleanup = new DisposableStack();
  const db = cleanup.adopt(new Sqlite(join(dataDir, 'tabern.db')), (one) => one.close());
  db.prepare('UPDATE log_lines SET at = at - ? WHERE at > ?').run(byMs, LATER);
  // the runner's clock is later than core's, which takes the end for the start
  db.exec(`UPDATE sessions SET started_at = (
    SELECT started_at FROM invocations WHERE invocations.session_id = sessions.id
  ) WHERE started_at = ended_at`);
  const chunks = db.prepare('SELECT session_id, number, entries FROM session_logs').all();
  const change = db.prepare(
    'UPDATE session_logs SET entries = ? WHERE session_id = ? AND number = ?',
  );
  for (const { session_id, number, entries } of chunks as Chunk[]) {
    const lines = zstdDecompressSync(entries).toString().split('\n');
    const moved = lines.map((line) =>
      line === '' ? '' : JSON.stringify(earlier(JSON.parse(line))),
    );
    change.run(zstdCompressSync(moved.join('\n')), session_id, number);
  }

  /** The value with the Unix times of this year in it, in milliseconds or seconds, moved. */
  function earlier(value: unknown): unknown {
    if (typeof value === 'number') {
      if (value > LATER && value < 2 * LATER) return value - byMs;
      const isSeconds = value > LATER / 1_000 && value < (2 * LATER) / 1_000;
      return isSeconds ? value - byMs / 1_000 : value;
    }
    if (Array.isArray(value)) return value.map(earlier);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, earlier(one)]));
  }
}
