/**
 * Hosts that cannot be reached, on a Chromium as Playwright launches it and through a relay: the
 * same net errors everywhere a driver reports one.
 */
import { createServer } from 'node:net';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { type Lab, listen, log, openLab } from '../../browser/lab.ts';

const test = suite('runner/sessions/relay/unreachable');
const ENGINES = ['/usr/lib/chromium/chromium', '/usr/lib/chromium/chromium-headless-shell'];
/** RFC 6761: never resolves. Loopback's broadcast address: the kernel refuses it at once. */
const [UNKNOWN, NOWHERE] = ['no-such-host.invalid', '127.255.255.255'];
const PATIENCE = { timeout: 60_000 };

for (const program of ENGINES) {
  test(`net errors are those of a Chromium without a proxy (${program})`, async () => {
    // a machine without name servers takes ten seconds to find no address
    const rules = { allow: cidrList(['127.0.0.0/8']), resolve: async () => [] };
    const egress = openEgress({ ...rules, log, isBrowser: true });
    await using lab = await openLab({ allow: [], program, egress });
    const refused = await closedPort();
    const hosts = [UNKNOWN, NOWHERE, refused];
    const plain = await chromium.launch({ executablePath: program });
    const expected = await errorsOf(await plain.newContext(), lab, hosts);
    await plain.close();
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    assert.equal(await errorsOf(await browser.newContext(), lab, hosts), expected);
    await browser.close();
    const all = Object.values(expected).flat().join();
    for (const code of ['NAME_NOT_RESOLVED', 'CONNECTION_REFUSED', 'ADDRESS_UNREACHABLE']) {
      assert.match(all, `net::ERR_${code}`);
    }
  });
}

test('a closed address is unreachable, also by name, and the error has the reason', async () => {
  await using lab = await openLab({ allow: [] });
  const { port } = new URL(lab.siteUrl);
  const browser: Browser = await chromium.connectOverCDP(lab.connectUrl);
  for (const scheme of ['http', 'https']) {
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const page = await browser.newPage(); // the error page comes after the error
      const going = page.goto(`${scheme}://${host}:${port}/`, PATIENCE);
      const wanted = `net::ERR_ADDRESS_UNREACHABLE: ${host} is not reachable from here`;
      assert.match(await going.then(() => 'a page', String), wanted);
      await page.close();
    }
  }
  assert.equal(lab.asked, []);
  await browser.close();
});

/** By place and host: what a driver reports there. */
async function errorsOf(
  context: BrowserContext,
  lab: Lab,
  hosts: string[],
): Promise<Record<string, string[]>> {
  const page = await context.newPage();
  const errors: Record<string, string[]> = {};
  for (const host of hosts) {
    for (const url of [`http://${host}/`, `https://${host}/`]) {
      const seen: string[] = [];
      errors[url] = seen;
      // of its own: the error page arrives after the error, and would interrupt what comes next
      const other = await context.newPage();
      seen.push(await other.goto(url, PATIENCE).then(() => 'a page', codeOf));
      await other.close();
      await page.goto(lab.siteUrl);
      seen.push(String(await page.evaluate(`fetch('${url}').then(() => 'ok', String)`)));
      for (const tag of ['img', 'iframe']) {
        const failed = page.waitForEvent('requestfailed', PATIENCE);
        const said = page.waitForEvent('console', PATIENCE);
        await page.evaluate(`{
          const element = document.createElement('${tag}');
          element.src = '${url}${tag}';
          document.body.append(element);
        }`);
        seen.push(String((await failed).failure()?.errorText));
        if (tag !== 'iframe') seen.push((await said).text());
        else said.catch(() => undefined);
      }
      const failed = context.waitForEvent('requestfailed', PATIENCE);
      const popup = page.waitForEvent('popup', PATIENCE);
      await page.evaluate(`void open('${url}')`);
      seen.push(String((await failed).failure()?.errorText));
      await (await popup).close();
    }
  }
  await page.close();
  return errors;
}

function codeOf(error: Error): string {
  return /net::\w+ at \S+/.exec(error.message)?.[0] ?? error.message;
}

async function closedPort(): Promise<string> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  return `127.0.0.1:${port}`;
}

test.run();
