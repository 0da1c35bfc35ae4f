/** One thing that a driver does, and what it runs in. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Site } from './site.ts';

export type Place = {
  browser: Browser;
  /** Of this thing alone, with the options of the thing. */
  context: BrowserContext;
  /** Empty, in that context. */
  page: Page;
  site: Site;
  /** A directory of this thing alone, for files of the driver. */
  directory: string;
};

export type Thing = {
  name: string;
  options?: BrowserContextOptions;
  /** Gives what plain JSON can hold. Throws only when the thing is broken on a plain Chromium. */
  run(place: Place): Promise<unknown>;
};

/** The first line of what a driver reports, without the name of the call. */
export function reported(error: Error): string {
  return (error.message.split('\n')[0] ?? '').replace(/^[\w.]+: /, '');
}
