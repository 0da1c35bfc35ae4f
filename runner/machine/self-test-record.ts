/**
 * A self-test of Chrome that passed is recorded in the cache directory, and not repeated by a start
 * with the same Chrome, sandbox and release: it costs 0.7 s of the start, and a second of CPU. The
 * record ends with the boot (cache.ts), and with a start of Chrome that fails.
 */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What the result depends on, but for fonts and kernel settings that change later. */
export type Tested = { program: string; sandbox: string; isNested: boolean; version: string };

export type SelfTestRecord = {
  /** The product that passed, such as `HeadlessChrome/156.0.8078.79`; undefined: test it. */
  passed(): Promise<string | undefined>;
  write(product: string): Promise<void>;
  remove(): Promise<void>;
};

const NAME = 'browser-self-test';

export async function openSelfTestRecord(
  cacheDir: string,
  { program, ...how }: Tested,
): Promise<SelfTestRecord> {
  const path = join(cacheDir, NAME);
  const { size, mtimeMs, ino } = await stat(program);
  const tested = JSON.stringify({ program, size, mtimeMs, ino, ...how });
  return {
    async passed() {
      // one that cannot be read is none: Chrome is tested
      const text = await readFile(path, 'utf8').catch(() => undefined);
      const [product, ofWhat] = text?.split('\n') ?? [];
      return ofWhat === tested ? product : undefined;
    },
    write: (product) => writeFile(path, `${product}\n${tested}\n`),
    remove: () => rm(path, { force: true }),
  };
}
