/** What a thing of Puppeteer's gets, and what it is. */
import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import type { Setting, Thing } from '../thing.ts';

export type Place = Setting & {
  browser: Browser;
  /** Of this thing alone. */
  context: BrowserContext;
  /** Empty, in that context. */
  page: Page;
  /** Another client of the same browser. */
  connect(): Promise<Browser>;
};

export type PuppeteerThing = Thing<Place>;
