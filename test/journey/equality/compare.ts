/**
 * Runs each thing on a plain Chromium, as the driver launches it, and in a session, and compares
 * what the two runs give. One service and one plain browser for all things of an engine.
 */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/must.ts';
import { boot } from '../../support/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { CONNECTIONS } from './connections.ts';
import { ENVIRONMENT } from './environment.ts';
import { EXCEPTIONS } from './exceptions.ts';
import { INPUT } from './input.ts';
import { NETWORK } from './network.ts';
import { OUTPUT } from './output.ts';
import { PAGES } from './pages.ts';
import { type Site, startSite } from './site.ts';
import { STORAGE } from './storage.ts';
import type { Place, Thing } from './thing.ts';

const THINGS: readonly Thing[] = [
  ...[...PAGES, ...NETWORK, ...CONNECTIONS, ...INPUT],
  ...[...OUTPUT, ...ENVIRONMENT, ...STORAGE],
];
/** Of one run of one thing. */
const LIMIT_MS = 20_000;
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];

type Browsers = { site: Site; plain: Place['browser']; session: Place['browser'] };

/** Declares and runs the tests of one engine. */
export function compareEngine(engine: 'chromium' | 'headless-shell', program: string): void {
  const test = suite(`journey/equality/${engine}`);
  const all = new AsyncDisposableStack();
  let browsers: Browsers | undefined;

  test('a plain browser and a session open', async () => {
    const site = all.use(await startSite());
    const plain = await chromium.launch({
      executablePath: program,
      args: ['--no-first-run', ...QUIET],
    });
    all.defer(() => plain.close());
    const stack = all.use(await boot());
    const json = { keepAlive: true, browserSettings: { engine } };
    const { connectUrl } = await stack.call<{ connectUrl: string }>('/v1/sessions', { json });
    const session = await chromium.connectOverCDP(connectUrl);
    all.defer(() => session.close());
    browsers = { site, plain, session };
  });

  for (const thing of THINGS) {
    test(thing.name, async () => {
      const { site, plain, session } = must(browsers, 'browsers');
      const [wanted, given] = await Promise.all([
        answerOf(thing, plain, site),
        // a failure is an answer: it is compared as well
        answerOf(thing, session, site).catch((error: Error) => ({ failed: error.message })),
      ]);
      const exception = EXCEPTIONS.find((one) => {
        return one.thing === thing.name && (one.engine ?? engine) === engine;
      });
      assert.equal(wanted, exception ? exception.plain : wanted);
      assert.equal(given, exception ? exception.session : wanted);
    });
  }
  test('every exception names a thing, and says why', () => {
    for (const { thing, reason } of EXCEPTIONS) {
      assert.ok(THINGS.some(({ name }) => name === thing) && reason !== '', thing);
    }
  });
  test('both end, and leave nothing', () => all.disposeAsync());
  test.run();
}

async function answerOf(thing: Thing, browser: Place['browser'], site: Site): Promise<unknown> {
  await using directory = tempDirectory();
  const context = await browser.newContext(thing.options);
  try {
    context.setDefaultTimeout(LIMIT_MS);
    const page = await context.newPage();
    const { promise, reject } = Promise.withResolvers<never>();
    const late = () => reject(new Error(`${thing.name}: no end within ${LIMIT_MS} ms`));
    const timer = setTimeout(late, LIMIT_MS);
    const running = thing.run({ browser, context, page, site, directory: directory.path });
    const answer = await Promise.race([running, promise]).finally(() => clearTimeout(timer));
    const text = JSON.stringify(answer)
      .replaceAll(site.url, 'http://site')
      .replaceAll(site.other, 'http://other');
    return JSON.parse(text);
  } finally {
    await context.close();
  }
}
