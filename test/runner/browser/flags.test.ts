/**
 * Chrome's command line against the ones that the installed drivers give their own launches. A
 * driver release that adds a switch or a feature turns this red: take it into flags.ts, or state
 * below why it is left out.
 */
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { chromeFlags, type FlagFacts } from '../../../runner/browser/flags.ts';
import { directory } from '../../support/runner/project.ts';
import { listen, openLab } from './lab.ts';

const test = suite('runner/browser/flags');
const ENGINES = {
  chromium: '/usr/lib/chromium/chromium',
  'headless-shell': '/usr/lib/chromium/chromium-headless-shell',
} as const;
const FACTS: FlagFacts = {
  engine: { kind: 'chromium' },
  profile: '/profile',
  cache: '/cache',
  proxyPort: 3128,
  hasSandbox: true,
  hasSmallShm: true,
  ignoreCertificateErrors: false,
  extensions: [],
};

/** Of a page. */
const SHEETS = 50;
/** Of a Chrome's directory. */
const CACHES: Readonly<Record<keyof typeof ENGINES, string>> = {
  chromium: 'cache/Default/Cache/Cache_Data',
  'headless-shell': 'profile/Default/Cache/Cache_Data',
};

/** Of the drivers' switches and features, those that ours have not, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  '--disable-client-side-phishing-detection': 'removed from Chromium',
  '--disable-crash-reporter': '--disable-breakpad does the same in both engines',
  '--disable-edgeupdater': 'Edge',
  '--disable-stack-profiler': 'Windows',
  '--disable-updater-scheduler': 'Edge',
  '--do-not-de-elevate': 'Windows',
  '--edge-skip-compat-layer-relaunch': 'Edge',
  '--enable-automation': 'sets navigator.webdriver',
  '--enable-unsafe-swiftshader': 'compiles shaders of a page outside the page sandbox',
  '--export-tagged-pdf': 'removed from Chromium: PDFs are tagged by default',
  '--no-sandbox': 'the sandbox stays on wherever the machine allows it',
  '--no-service-autorun': 'Windows',
  '--unsafely-disable-devtools-self-xss-warnings': 'no DevTools window is ever open',
  '--use-mock-keychain': 'macOS',
  TcpPortRandomizationWin: 'Windows',
  msEdgeUpdateLaunchServicesPreferredVersion: 'Edge',
  msForceBrowserSignIn: 'Edge',
};

/** Values that belong to one launch. */
const OF_ONE_LAUNCH =
  /^--(user-data-dir|remote-debugging-\w+|headless|window-size)\b|^about:blank$/;

test("a driver's switch is on the command line, or the test states the reason", async () => {
  const ours = namesOf(chromeFlags(FACTS));
  for (const [driver, argv] of Object.entries(await driversArgv())) {
    const missing = [...namesOf(argv)].filter((name) => !ours.has(name) && !(name in LEFT_OUT));
    assert.equal(missing, [], `${driver} gives what ours does not`);
  }
});

test("a switch that is left out is a driver's, and not on the command line", async () => {
  const ours = namesOf(chromeFlags(FACTS));
  const theirs = namesOf(Object.values(await driversArgv()).flat());
  for (const name of Object.keys(LEFT_OUT)) {
    assert.ok(theirs.has(name), `${name} is in no driver any more`);
    assert.not.ok(ours.has(name), name);
  }
});

test('no switch is set twice: Chrome uses the last one only', () => {
  for (const extensions of [[], ['/a', '/b']]) {
    const names = chromeFlags({ ...FACTS, extensions }).map((flag) => flag.replace(/=.*/, ''));
    assert.equal(names.length, new Set(names).size);
  }
});

for (const [kind, program] of Object.entries(ENGINES)) {
  test(`page.goBack() returns to the page before it (${kind})`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], program });
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const page = await browser.newPage();
    await page.goto(`${lab.siteUrl}/one`);
    // another site: such a page is kept whole in the back/forward cache, where there is one
    await page.goto(`${lab.siteUrl.replace('127.0.0.1', 'localhost')}/two`);
    const response = await page.goBack({ timeout: 30_000 });
    assert.is(response?.url(), `${lab.siteUrl}/one`);
    assert.is(await page.title(), 'the site');
    await browser.close();
  });

  test(`pages see a driver's pointer, scrollbars and colours (${kind})`, async () => {
    const plain = await chromium.launch({ executablePath: program });
    const expected = await look(await plain.newPage());
    await plain.close();
    await using lab = await openLab({ allow: [], program });
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    assert.equal(await look(await browser.newPage()), expected);
    await browser.close();
  });
}

for (const [kind, program] of Object.entries(ENGINES)) {
  test(`a second visit comes from the HTTP cache, in a few files (${kind})`, async () => {
    await using site = await cacheable();
    await using lab = await openLab({ allow: ['127.0.0.0/8'], program });
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const context = must(browser.contexts()[0], 'the default context');
    await (await context.newPage()).goto(site.url);
    assert.is(site.asked(), 1 + SHEETS);
    // a page of its own: without the memory cache of the first
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    let cached = 0;
    session.on('Network.responseReceived', ({ response }) => {
      if (response.fromDiskCache === true) cached += 1;
    });
    await session.send('Network.enable');
    await page.goto(`${site.url}?again`);
    assert.is(site.asked(), 2 + SHEETS, 'asked again for what is cached');
    assert.is(cached, SHEETS);
    const files = await readdir(join(lab.chrome.dir, CACHES[kind as keyof typeof ENGINES]));
    assert.ok(files.includes('data_1'), `files: ${files.join(' ')}`);
    assert.ok(files.length < SHEETS / 2, `files: ${files.length}`);
    await browser.close();
  });
}

/** A page of style sheets that may be cached; `asked`: how many requests came, but for icons. */
async function cacheable() {
  let asked = 0;
  const server = createServer(({ url = '/' }, response) => {
    if (url !== '/favicon.ico') asked += 1;
    const sheets = Array.from({ length: SHEETS }, (_, at) => `<link rel=stylesheet href="/${at}">`);
    const isPage = /^[/]([?]|$)/.test(url);
    const type = isPage ? 'text/html' : 'text/css';
    const control = isPage ? 'no-store' : 'max-age=600';
    response.writeHead(200, { 'content-type': type, 'cache-control': control });
    response.end(isPage ? sheets.join('') : `/* ${'x'.repeat(2_000)} */`);
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}/`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      server.close().closeAllConnections();
    },
  };
}

async function look(page: Page): Promise<unknown> {
  await page.setContent('<div style="height: 9999px">');
  return await page.evaluate(`({
    hover: matchMedia('(hover: hover)').matches,
    anyHover: matchMedia('(any-hover: hover)').matches,
    pointer: matchMedia('(pointer: fine)').matches,
    anyPointer: matchMedia('(any-pointer: fine)').matches,
    gamut: matchMedia('(color-gamut: srgb)').matches,
    scrollbar: innerWidth - document.documentElement.clientWidth,
  })`);
}

/** Switches without their values; of features and settings each by itself. */
function namesOf(argv: readonly string[]): Set<string> {
  const names = argv.flatMap((flag) => {
    const [name = '', value = ''] = flag.split(/=(.*)/s);
    const isList = /^--(enable|disable)-features$/.test(name);
    return isList ? value.split(',') : OF_ONE_LAUNCH.test(flag) ? [] : [name];
  });
  return new Set(names);
}

/** As each driver starts a browser: a program in its place writes down its words. */
async function driversArgv(): Promise<Record<string, string[]>> {
  await using dir = await directory({});
  const argvOf = async (
    name: string,
    launch: (executablePath: string) => Promise<unknown>,
  ): Promise<string[]> => {
    const program = join(dir.path, name);
    await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$@" > '${program}.argv'\n`);
    await chmod(program, 0o755);
    await launch(program).catch(() => undefined); // it is no browser
    return (await readFile(`${program}.argv`, 'utf8')).trim().split('\n');
  };
  return {
    Playwright: await argvOf('playwright', (executablePath) => {
      return chromium.launch({ executablePath });
    }),
    Puppeteer: await argvOf('puppeteer', (executablePath) => {
      return puppeteer.launch({ executablePath });
    }),
  };
}

test.run();
