/** An action of Puppeteer, and its arguments. */
import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import type { Setting, Thing } from '../thing.ts';

export type Place = Setting & {
  browser: Browser;
  /** A new context. */
  context: BrowserContext;
  /** An empty page of the context. */
  page: Page;
  /** Another client of the same browser. */
  connect(): Promise<Browser>;
};

export type PuppeteerThing = Thing<Place>;
