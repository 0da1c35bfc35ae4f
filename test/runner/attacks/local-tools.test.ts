/**
 * A page of another site, in a Chrome on a person's machine, against the tools on that machine:
 * `tabern dev`, /metrics, the gateway, `tabern listen`, and every port that they open.
 */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer, { type Browser } from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { openPlainChrome } from '../../support/runner/plain-chrome.ts';
import { startGroup } from '../../support/service/group.ts';
import { familyOf } from '../../support/service/processes.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { PRELUDE } from './lab/attack.ts';
import { type LocalAttack, localTools } from './table/local-tools.ts';

const tests = suite('runner/attacks/local-tools');
const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** For a build and starts on a busy machine. */
const LIMIT_MS = 60_000;
const NAME = 'evil.test';
const ENTRY = `import { defineFn } from 'tabern';
defineFn('hit', async () => 'reached');`;

const spellings = (port: number | string) =>
  ['127.0.0.1', 'localhost', NAME].map((host) => `${host}:${port}`);

/** A site that records its requests, as proof that pages reach this machine. */
async function openSite() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<body>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function openDev(dir: string, port: number) {
  const cwd = join(dir, 'project');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'index.ts'), ENTRY);
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:npm_|TABERN_)/.test(name)),
  ) as Record<string, string>;
  const command = [process.execPath, BIN, 'dev', 'index.ts', '--port', String(port)];
  const dev = startGroup(command, { cwd, env: { ...env, XDG_CACHE_HOME: join(dir, 'c') } });
  await until(() => {
    if (dev.hasEnded()) throw new Error(dev.said());
    return dev.said().includes('listening on');
  }, LIMIT_MS);
  return dev;
}

function openListen(stack: Stack, dir: string) {
  const env = { PATH: '', TABERN_API_KEY: stack.apiKey, TABERN_BASE_URL: stack.url };
  const command = [process.execPath, BIN, 'listen', '--forward-to', 'http://127.0.0.1:9/'];
  return startGroup(command, { cwd: dir, env });
}

/** Ports of the machine's network that a process and its children listen on. */
function portsOf(pid: number): number[] {
  const own = new Set(familyOf(pid).flatMap((one) => [one.pid, pid].flatMap(socketsOf)));
  const rows = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) =>
    readFileSync(path, 'utf8').trim().split('\n').slice(1),
  );
  const fields = rows.map((row) => row.trim().split(/\s+/));
  const listening = fields.filter((row) => row[3] === '0A' && own.has(`socket:[${row[9]}]`));
  return listening.map((row) => Number.parseInt(row[1]?.split(':').at(-1) ?? '', 16));
}

function socketsOf(pid: number): string[] {
  try {
    const names = readdirSync(`/proc/${pid}/fd`);
    return names.map((name) => readlinkSync(`/proc/${pid}/fd/${name}`));
  } catch {
    return []; // it has ended, or a file of it has
  }
}

async function attempted(browser: Browser, { from, body }: LocalAttack, aim: Aim) {
  const port = { site: aim.site, dev: aim.dev, metrics: aim.metrics, gateway: aim.gateway }[from];
  const page = await browser.newPage();
  try {
    await page.goto(`http://${NAME}:${port}/`);
    const told = {
      dev: spellings(aim.dev),
      metrics: spellings(aim.metrics),
      gateway: spellings(aim.gateway),
      ports: aim.ports.flatMap(spellings),
      sessionId: aim.sessionId,
    };
    const run = `return await (${body})(${JSON.stringify(told)});`;
    return (await page.evaluate(`(async () => { ${PRELUDE} ${run} })()`)) as Record<string, string>;
  } finally {
    await page.close();
  }
}

type Aim = {
  site: number;
  dev: number;
  metrics: number;
  gateway: number;
  ports: number[];
  sessionId: string;
};

/** Stored resources, by the API. */
const stored = (stack: Stack) =>
  Promise.all(['sessions', 'contexts', 'webhooks'].map((noun) => stack.call(`/v1/${noun}`)));

tests(`${localTools.length} attacks of a page on local tools are refused`, async () => {
  const [metrics, dev] = [await freePort(), await freePort()];
  await using dir = tempDirectory();
  await using stack = await boot({ env: { TABERN_METRICS_LISTEN: `127.0.0.1:${metrics}` } });
  await using tool = await openDev(dir.path, dev);
  await using listen = openListen(stack, dir.path);
  await until(() => listen.said().includes('forwarding to'), LIMIT_MS);
  await using site = await openSite();
  const args = [`--host-resolver-rules=MAP ${NAME} 127.0.0.1`];
  // Chrome's own check of requests to a person's machine; other browsers have none
  args.push('--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests');
  await using chrome = await openPlainChrome(undefined, args);
  const browser = await puppeteer.connect({ browserWSEndpoint: chrome.url });
  const json = { keepAlive: true };
  const { id: sessionId } = await stack.call<{ id: string }>('/v1/sessions', { json });

  for (const { pid } of listen.family()) assert.equal(portsOf(pid), [], '`tabern listen`');
  const [gateway = 0] = portsOf(stack.pid).filter((port) => port !== metrics);
  const tools = tool.family().flatMap(({ pid }) => portsOf(pid));
  const ports = [...new Set([...portsOf(stack.pid), ...tools])];
  assert.ok(ports.includes(dev) && ports.includes(metrics) && ports.includes(gateway));
  const aim = { site: site.port, dev, metrics, gateway, ports, sessionId };

  const control = `async () => { await fetch('http://127.0.0.1:${site.port}/reached',
    { method: 'POST', mode: 'no-cors', body: 'a' }); return {}; }`;
  await attempted(browser, { name: '', from: 'site', body: control, ending: { type: 'own' } }, aim);
  assert.ok(site.asked.includes('POST /reached'), 'a page reaches this machine');

  const before = await stored(stack);
  for (const attack of localTools) {
    const answers = await attempted(browser, attack, aim);
    for (const [where, answer] of Object.entries(answers)) {
      assert.match(answer, /^no: /, `${attack.name}: ${where}`);
    }
    assert.not.match(tool.said(), 'hit started', attack.name);
  }
  assert.equal(await stored(stack), before);
  await browser.disconnect();
  const url = `http://127.0.0.1:${dev}/v1/functions/hit/invoke`;
  const headers = { 'content-type': 'application/json' };
  assert.is((await fetch(url, { method: 'POST', headers, body: '{}' })).status, 200);
  assert.match(tool.said(), 'hit started', 'what a person runs is seen');
});

tests.run();
