/** What a thing of Playwright's gets, and what it is. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Setting, Thing } from '../thing.ts';

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
