/**
 * Runs each action of each driver in a plain Chromium, as the driver launches it, and in a session,
 * and compares the results. One service for all actions of an engine, one session and one plain
 * browser for all actions of a driver.
 */
import { readFile } from 'node:fs/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { rowsIn } from '../../support/whole.ts';
import { EXCEPTIONS } from './exceptions.ts';
import { PLAYWRIGHT } from './playwright/driver.ts';
import { PUPPETEER } from './puppeteer/driver.ts';
import { type Site, startSite } from './site.ts';
import { LIMIT_MS, type OpenBrowser, type Setting } from './thing.ts';

const DRIVERS = [PLAYWRIGHT, PUPPETEER];

const ENGINES = ['chromium', 'headless-shell'] as const;

type Engine = (typeof ENGINES)[number];
type Downloaded = Setting['downloaded'];
type Side = { browser: OpenBrowser; downloaded: Downloaded };

/** Declares and runs the tests of one engine. */
export function compareEngine(engine: Engine, program: string): void {
  const test = suite(`journey/equality/${engine}`);
  const all = new AsyncDisposableStack();
  let service: { site: Site; stack: Stack } | undefined;

  test('a site and a service start', async () => {
    // RFC 6666: never routed; the service refuses such addresses unless they are allowed
    const env = { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.0/8,100::/64' };
    service = { site: all.use(await startSite()), stack: all.use(await boot({ env })) };
  });
  for (const driver of DRIVERS) {
    let sides: { plain: Side; session: Side } | undefined;
    test(`${driver.name}: a plain browser and a session open`, async () => {
      const { stack } = must(service, 'a service');
      const plain = all.use(await driver.open({ program }));
      const json = { keepAlive: true, browserSettings: { engine } };
      type Session = { id: string; connectUrl: string };
      const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
      sides = {
        plain: { browser: plain, downloaded: ({ path }) => readFile(path, 'utf8') },
        session: {
          browser: all.use(await driver.open({ url: connectUrl })),
          downloaded: ({ name }) => keptDownload(stack, id, name),
        },
      };
    });
    const keyOf = ({ name }: { name: string }, place: Engine) => {
      return exceptionOf(driver.name, name, place) ?? 'equal';
    };
    for (const { name } of rowsIn({ rows: driver.things, places: ENGINES, keyOf }, engine)) {
      test(`${driver.name}: ${name}`, async () => {
        const { plain, session } = must(sides, 'browsers');
        const { site } = must(service, 'a site');
        const [wanted, given] = await Promise.all([
          answerOf(name, plain, site),
          // a failure is a result, too: it is compared
          answerOf(name, session, site).catch((error: Error) => ({ failed: error.message })),
        ]);
        const exception = exceptionOf(driver.name, name, engine);
        assert.equal(wanted, exception ? exception.plain : wanted);
        assert.equal(given, exception ? exception.session : wanted);
      });
    }
  }
  test('every exception names a test and has a reason', () => {
    for (const { driver, thing, reason } of EXCEPTIONS) {
      const { things } = must(
        DRIVERS.find((one) => one.name === driver),
        driver,
      );
      assert.ok(things.some(({ name }) => name === thing) && reason !== '', thing);
    }
  });
  test('all browsers and services end and leave no process', () => all.disposeAsync());
  test.run();
}

function exceptionOf(driver: string, thing: string, engine: Engine) {
  return EXCEPTIONS.find((one) => {
    return one.thing === thing && one.driver === driver && (one.engine ?? engine) === engine;
  });
}

async function answerOf(name: string, { browser, downloaded }: Side, site: Site): Promise<unknown> {
  await using directory = tempDirectory();
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(new Error(`${name}: no end within ${LIMIT_MS} ms`));
  const timer = setTimeout(late, LIMIT_MS);
  const running = browser.run(name, { site, directory: directory.path, downloaded });
  const answer = await Promise.race([running, promise]).finally(() => clearTimeout(timer));
  const text = JSON.stringify(answer)
    .replaceAll(site.url, 'http://site')
    .replaceAll(site.other, 'http://other');
  return JSON.parse(text);
}

/** From the list of the session's downloads, by its name. */
async function keptDownload(stack: Stack, sessionId: string, filename: string): Promise<string> {
  const query = new URLSearchParams({ sessionId, filename });
  type List = { downloads: { id: string }[] };
  const { id } = await until(async () => {
    return (await stack.call<List>(`/v1/downloads?${query}`)).downloads[0];
  });
  const accept = { accept: 'application/octet-stream' };
  return await (await stack.fetch(`/v1/downloads/${id}`, { headers: accept })).text();
}
