/** An action of Playwright, and its arguments. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Setting, Thing } from '../thing.ts';

export type Place = Setting & {
  browser: Browser;
  /** A new context, with the options of the action. */
  context: BrowserContext;
  /** An empty page of the context. */
  page: Page;
  /** Another client of the session, or another plain browser: for actions that end a connection. */
  another(): Promise<Browser>;
};

export type PlaywrightThing = Thing<Place> & { options?: BrowserContextOptions };
