/** Puppeteer: its actions, and how they run. */
import puppeteer from 'puppeteer-core';
import { must } from '../../../../proto/common/must.ts';
import { type Driver, LIMIT_MS, QUIET } from '../thing.ts';
import { CONNECTIONS } from './connections.ts';
import { ENVIRONMENT } from './environment.ts';
import { INPUT } from './input.ts';
import { NETWORK } from './network.ts';
import { OUTPUT } from './output.ts';
import { PAGES } from './pages.ts';
import type { PuppeteerThing } from './place.ts';
import { TARGETS } from './targets.ts';

const THINGS: readonly PuppeteerThing[] = [
  ...[...PAGES, ...TARGETS, ...NETWORK, ...CONNECTIONS],
  ...[...INPUT, ...OUTPUT, ...ENVIRONMENT],
];

export const PUPPETEER: Driver = {
  name: 'puppeteer',
  things: THINGS,
  async open(target) {
    const browser =
      'url' in target
        ? await puppeteer.connect({ browserWSEndpoint: target.url })
        : await puppeteer.launch({
            executablePath: target.program,
            headless: target.program.endsWith('shell') ? 'shell' : true,
            args: ['--no-sandbox', ...QUIET],
          });
    const connect = () => puppeteer.connect({ browserWSEndpoint: browser.wsEndpoint() });
    return {
      async run(name, setting) {
        const thing = must(
          THINGS.find((one) => one.name === name),
          name,
        );
        const context = await browser.createBrowserContext();
        try {
          const page = await context.newPage();
          page.setDefaultTimeout(LIMIT_MS);
          return await thing.run({ ...setting, browser, context, page, connect });
        } finally {
          await context.close();
        }
      },
      [Symbol.asyncDispose]: () => browser.close(),
    };
  },
};
