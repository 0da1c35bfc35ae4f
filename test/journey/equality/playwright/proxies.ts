/** Proxies of contexts. The requests that reach a proxy are compared too. */
import { freePort } from '../../../support/port.ts';
import { startHttpProxy, startSocksProxy } from '../../../support/servers/proxies.ts';
import { reported } from '../thing.ts';
import type { Place, PlaywrightThing } from './place.ts';

const CREDENTIALS = { username: 'ada', password: 'se:cret p@ss' };
const SHOP = 'http://shop.test/two';

type Proxied = { server: string; bypass?: string; username?: string; password?: string };

export const PROXIES: readonly PlaywrightThing[] = [
  {
    name: 'a proxy of a context: plain requests and sockets',
    async run({ browser, site }) {
      await using proxy = await startHttpProxy(portOf(site.url));
      const context = await browser.newContext({ proxy: { server: proxy.address } });
      const page = await context.newPage();
      const response = await page.goto(SHOP);
      const echoed = await page.evaluate(`new Promise((resolve) => {
        const socket = new WebSocket('ws://sockets.test/');
        socket.onopen = () => socket.send('text');
        socket.onmessage = ({ data }) => resolve(data);
        socket.onerror = () => resolve('failed');
      })`);
      const facts = [response?.status(), await response?.text(), echoed];
      await context.close();
      return [facts, pagesAsked(proxy)];
    },
  },
  {
    name: 'a proxy with credentials: right, wrong and none',
    async run({ browser, site }) {
      await using proxy = await startHttpProxy(portOf(site.url), CREDENTIALS);
      const answers: unknown[] = [];
      const server = `http://${proxy.address}`;
      answers.push(await answerAt(browser, { server, ...CREDENTIALS }, SHOP));
      // a tunnel to a site without TLS
      answers.push(await answerAt(browser, { server, ...CREDENTIALS }, 'https://shop.test/'));
      const wrong = { server, ...CREDENTIALS, password: 'wrong' };
      answers.push(await answerAt(browser, wrong, SHOP));
      answers.push(await answerAt(browser, { server }, SHOP));
      return [answers, pagesAsked(proxy)];
    },
  },
  {
    name: 'a proxy and its bypass rules',
    async run({ browser, site }) {
      await using proxy = await startHttpProxy(portOf(site.url));
      const answers: unknown[] = [];
      for (const [bypass, url] of [
        [undefined, `${site.url}/two`],
        ['127.0.0.1', `${site.url}/two`],
        ['.test, localhost', SHOP],
        ['.test, localhost', `${site.other}/two`],
        ['other.test', SHOP],
        ['[::1], 10.0.0.0/8', SHOP],
        ['127.0.0.0/8', `${site.url}/two`],
      ] as const) {
        const server = `http://${proxy.address}`;
        answers.push(await answerAt(browser, bypass ? { server, bypass } : { server }, url));
      }
      return [answers, pagesAsked(proxy)];
    },
  },
  {
    name: 'a bypass rule with a port',
    run: ({ browser, site }) => {
      const proxy = { server: 'http://192.0.2.1:3128', bypass: new URL(site.url).host };
      return answerAt(browser, proxy, `${site.url}/data.json`);
    },
  },
  {
    name: 'a SOCKS proxy, and an unreachable proxy',
    async run({ browser, site }) {
      await using socks = await startSocksProxy(portOf(site.url), CREDENTIALS);
      const server = `127.0.0.1:${await freePort()}`;
      return [
        await answerAt(browser, { server: `socks5://${socks.address}`, ...CREDENTIALS }, SHOP),
        await answerAt(browser, { server: `http://${server}` }, SHOP),
        await answerAt(browser, { server: `http://${server}` }, 'https://shop.test/'),
        await answerAt(browser, { server: `socks5://${server}` }, SHOP),
      ];
    },
  },
];

async function answerAt(browser: Place['browser'], proxy: Proxied, url: string) {
  const context = await browser.newContext({ proxy }).catch(reported);
  if (typeof context === 'string') return context;
  const page = await context.newPage();
  const answer = await page.goto(url).catch(reported);
  const facts =
    typeof answer === 'string' ? answer : [answer?.status(), answer && (await answer.text())];
  await context.close();
  return facts;
}

/** Icons, and Chromium's check for a captive portal after a TLS error. */
const CHROMES_OWN = /\/(?:favicon\.ico|generate_204)$/;

/** Without repetitions, and without requests of the browser itself. */
function pagesAsked(proxy: { asked: string[] }): string[] {
  return [...new Set(proxy.asked)].filter((one) => !CHROMES_OWN.test(one)).sort();
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
