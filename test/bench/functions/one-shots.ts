/**
 * `node test/bench/functions/one-shots.ts [runs]`: the time of a warm `POST /v1/screenshot` of a
 * local page, beside the same steps by hand in a running headless shell, in the same run: a new
 * page, its viewport, the navigation, the load, the picture. Read the ratio.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import CDP from 'chrome-remote-interface';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startPages } from '../../support/servers/pages.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { show, timed } from '../support/figures.ts';
import { settled } from '../support/settled.ts';

const RUNS = Number(process.argv[2] ?? 20);
const CHROME = process.env['TABERN_SHELL'] ?? '/usr/lib/chromium/chromium-headless-shell';
const WARM_UP_RUNS = 10;
/** By then the spares have been replaced: the warm case is measured. */
const REST_MS = 1_500;
const VIEWPORT = { width: 1280, height: 720, deviceScaleFactor: 1 };
const SPARES = { TABERN_CHROME_SPARES: '2', TABERN_HOST_SPARES: '1' };

await using pages = await startPages();
await using shell = await startShell();
await using stack = await boot({ env: SPARES, isDirect: true });
await settled(stack.pid);
for (let run = 0; run < WARM_UP_RUNS; run += 1) {
  await byService(stack, pages.url);
  await byHand(shell.port, pages.url);
}
const [hand, service]: [number[], number[]] = [[], []];
for (let run = 0; run < RUNS; run += 1) {
  await sleep(REST_MS);
  service.push(...(await timed(1, () => byService(stack, pages.url))));
  hand.push(...(await timed(1, () => byHand(shell.port, pages.url))));
}
show('the same steps by hand', hand);
show('POST /v1/screenshot', service, hand);

async function byService({ fetch }: Stack, url: string): Promise<void> {
  const answer = await fetch('/v1/screenshot', { json: { url, viewport: VIEWPORT } });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
}

async function byHand(port: number, url: string): Promise<void> {
  const target = await CDP.New({ port });
  const client = await CDP({ port, target, local: true });
  const { Page, Emulation } = client;
  await Promise.all([
    Page.enable(),
    Emulation.setDeviceMetricsOverride({ ...VIEWPORT, mobile: false }),
  ]);
  const loaded = Page.loadEventFired();
  await Page.navigate({ url });
  await loaded;
  await Page.captureScreenshot({ format: 'png' });
  await client.close();
  await CDP.Close({ port, id: target.id });
}

async function startShell() {
  const dir = tempDirectory();
  const port = await freePort();
  const shell = spawn(CHROME, [
    ...[`--remote-debugging-port=${port}`, `--user-data-dir=${dir.path}`, '--no-sandbox'],
    ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
    ...['--disable-sync', 'about:blank'],
  ]);
  const closed = new Promise((resolve) => shell.once('close', resolve));
  await until(() => CDP.Version({ port }).catch(() => false));
  return {
    port,
    async [Symbol.asyncDispose]() {
      shell.kill();
      await closed;
      await dir[Symbol.asyncDispose]();
    },
  };
}
