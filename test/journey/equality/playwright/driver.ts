/** Playwright: its actions, and how they run. */
import { chromium } from 'playwright-core';
import { must } from '../../../../proto/common/must.ts';
import { type Driver, LIMIT_MS, QUIET } from '../thing.ts';
import { CONNECTIONS } from './connections.ts';
import { ENVIRONMENT } from './environment.ts';
import { INPUT } from './input.ts';
import { NETWORK } from './network.ts';
import { OUTPUT } from './output.ts';
import { PAGES } from './pages.ts';
import type { PlaywrightThing } from './place.ts';
import { PROXIES } from './proxies.ts';
import { ROUTES } from './routes.ts';
import { STORAGE } from './storage.ts';
import { UPLOADS } from './uploads.ts';

const THINGS: readonly PlaywrightThing[] = [
  ...[...PAGES, ...NETWORK, ...CONNECTIONS, ...PROXIES],
  ...[...ROUTES, ...INPUT, ...UPLOADS, ...OUTPUT, ...ENVIRONMENT, ...STORAGE],
];

export const PLAYWRIGHT: Driver = {
  name: 'playwright',
  things: THINGS,
  async open(target) {
    const another = () =>
      'url' in target
        ? chromium.connectOverCDP(target.url)
        : chromium.launch({ executablePath: target.program, args: [...QUIET] });
    const browser = await another();
    return {
      async run(name, setting) {
        const thing = must(
          THINGS.find((one) => one.name === name),
          name,
        );
        const context = await browser.newContext(thing.options);
        try {
          context.setDefaultTimeout(LIMIT_MS);
          const page = await context.newPage();
          return await thing.run({ ...setting, browser, context, page, another });
        } finally {
          await context.close();
        }
      },
      [Symbol.asyncDispose]: () => browser.close(),
    };
  },
};
