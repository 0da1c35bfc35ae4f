/** Filter lists: from files and addresses, read once, again after a day and after a failure. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openFilters } from '../../../../runner/jail/egress/ad-filters.ts';
import { tempDirectory } from '../../../support/temp.ts';

const filters = suite('runner/jail/egress/ad-filters');
const DAY_MS = 24 * 3_600_000;

filters('listed hosts are blocked, exceptions of the list are not', async () => {
  await using dir = tempDirectory();
  const list = join(dir.path, 'list.txt');
  writeFileSync(list, '||ads.test^\n||third.test^$third-party\n@@||good.ads.test^\n');
  const isBlocked = await openFilters({ lists: [list], now: () => 0 }).load();
  assert.ok(isBlocked(new URL('https://ads.test/')));
  assert.ok(isBlocked(new URL('https://x.ads.test/')));
  assert.ok(isBlocked(new URL('https://third.test/')));
  assert.not(isBlocked(new URL('https://good.ads.test/')));
  assert.not(isBlocked(new URL('https://ads.test.example/')));
});

filters('a list at a URL is read once a day', async () => {
  let reads = 0;
  const server = createServer((_, to) => {
    reads += 1;
    to.end(`||day${reads}.test^`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  let at = 0;
  const lists = openFilters({ lists: [`http://127.0.0.1:${port}/`], now: () => at });
  const [first, again] = await Promise.all([lists.load(), lists.load()]);
  assert.is(first, again);
  assert.ok(first(new URL('https://day1.test/')));
  at = DAY_MS + 1;
  assert.ok((await lists.load())(new URL('https://day2.test/')));
  assert.is(reads, 2);
  server.close();
  server.closeAllConnections();
});

filters('an unreadable list rejects, and the next load tries again', async () => {
  await using dir = tempDirectory();
  const list = join(dir.path, 'late.txt');
  const lists = openFilters({ lists: [list], now: () => 0 });
  const failed = await lists.load().then(
    () => 'loaded',
    (error: unknown) => String(error),
  );
  assert.match(failed, /late\.txt/);
  writeFileSync(list, '||ads.test^');
  assert.ok((await lists.load())(new URL('https://ads.test/')));
});

filters.run();
