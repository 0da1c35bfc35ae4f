/** An action of a driver, and the environment in which it runs. */
import type { Site } from './site.ts';

export type Thing<Place> = {
  name: string;
  /** Returns JSON. Throws only when the action fails in a plain Chromium. */
  run(place: Place): Promise<unknown>;
};

/** The environment of an action. */
export type Setting = {
  site: Site;
  /** A new directory for files of the driver. */
  directory: string;
  /** The bytes of a file that the browser has downloaded. */
  downloaded(file: { path: string; name: string }): Promise<string>;
};

/** A program for the driver to launch, or the URL of a running browser. */
export type Target = { program: string } | { url: string };

export type Driver = {
  name: 'playwright' | 'puppeteer';
  things: readonly { name: string }[];
  open(target: Target): Promise<OpenBrowser>;
};

export type OpenBrowser = AsyncDisposable & {
  /** Runs one action of the driver in a new context. */
  run(name: string, setting: Setting): Promise<unknown>;
};

/**
 * The limit of one run of one action.
 * A plain Chromium has taken 20 s for an upload of 13 MiB on a busy machine.
 */
export const LIMIT_MS = 90_000;
/** For browsers that are launched by a driver. */
export const QUIET: readonly string[] = [
  ...['--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

/** The first line of a driver's error, without the name of the call. */
export function reported(error: Error): string {
  return (error.message.split('\n')[0] ?? '').replace(/^[\w.]+: /, '');
}
