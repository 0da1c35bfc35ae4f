/** Playwright: its things, and how they run. */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { must } from '../../../../proto/common/must.ts';
import { type Driver, LIMIT_MS, QUIET, type Setting, type Thing } from '../thing.ts';
import { CONNECTIONS } from './connections.ts';
import { ENVIRONMENT } from './environment.ts';
import { INPUT } from './input.ts';
import { NETWORK } from './network.ts';
import { OUTPUT } from './output.ts';
import { PAGES } from './pages.ts';
import { PROXIES } from './proxies.ts';
import { ROUTES } from './routes.ts';
import { STORAGE } from './storage.ts';
import { UPLOADS } from './uploads.ts';

export type Place = Setting & {
  browser: Browser;
  /** Of this thing alone, with the options of the thing. */
  context: BrowserContext;
  /** Empty, in that context. */
  page: Page;
  /** Another client of the session, or another plain browser: for what ends a connection. */
  another(): Promise<Browser>;
};

export type PlaywrightThing = Thing<Place> & { options?: BrowserContextOptions };

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
