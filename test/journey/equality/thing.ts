/** One thing that a driver does, and what runs it. */
import type { Site } from './site.ts';

export type Thing<Place> = {
  name: string;
  /** Gives what plain JSON can hold. Throws only when the thing is broken on a plain Chromium. */
  run(place: Place): Promise<unknown>;
};

/** What a thing is run with. */
export type Setting = {
  site: Site;
  /** A directory of this thing alone, for files of the driver. */
  directory: string;
  /** The bytes of a file that the browser has downloaded. */
  downloaded(file: { path: string; name: string }): Promise<string>;
};

/** A program that the driver launches by itself, or the URL of a browser that runs. */
export type Target = { program: string } | { url: string };

export type Driver = {
  name: 'playwright' | 'puppeteer';
  things: readonly { name: string }[];
  open(target: Target): Promise<OpenBrowser>;
};

export type OpenBrowser = AsyncDisposable & {
  /** Runs one of the driver's things in a context of its own. */
  run(name: string, setting: Setting): Promise<unknown>;
};

/** Of one run of one thing. */
export const LIMIT_MS = 20_000;
/** For browsers that are launched by a driver. */
export const QUIET: readonly string[] = [
  ...['--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

/** The first line of what a driver reports, without the name of the call. */
export function reported(error: Error): string {
  return (error.message.split('\n')[0] ?? '').replace(/^[\w.]+: /, '');
}
