/** A machine without a Chrome runs the npm package's, unpacked once and in the same jail. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ChromeNotFound, findChrome, findEngines } from '../../../runner/browser/find.ts';
import { errorOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';
import { log, openLab } from './lab.ts';

const find = suite('runner/browser/find');

find('the Chrome of the npm package opens a page in the jail', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'], system: [] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await browser.contexts()[0]?.newPage();
  await page?.goto(lab.siteUrl);
  assert.is(await page?.title(), 'the site');
  assert.match(browser.version(), /^\d+\./);
  await browser.close();
});

find('the npm package is unpacked once, readable for a jail of any uid', async () => {
  await using dir = tempDirectory();
  const where = { cacheDir: dir.path, log, system: [] };
  const [first, second] = await Promise.all([findChrome(where), findChrome(where)]);
  assert.equal(first, second, 'two runners that start at once');
  const before = statSync(first.program).mtimeMs;
  const again = await findChrome(where);
  assert.is(statSync(again.program).mtimeMs, before);
  assert.is(readdirSync(dir.path).length, 1, 'no part is left');
  for (const path of [first.program, ...Object.values(first.env)]) {
    assert.ok(existsSync(path), path);
    assert.is(statSync(path).mode & 0o055, 0o055, path);
  }
  assert.is(readFileSync(first.program).subarray(1, 4).toString(), 'ELF');
});

find('the system’s Chrome is preferred, and a missing configured one is an error', async () => {
  const engine = await findChrome({ cacheDir: '/nowhere', log });
  assert.match(engine.program, /^\/(usr|opt)\//);
  const error = await errorOf(findChrome({ cacheDir: '/nowhere', log, program: '/no/chrome' }));
  assert.instance(error, ChromeNotFound);
});

find('invocations use the shell, sessions the full browser, or the only engine', async () => {
  const both = await findEngines({ cacheDir: '/nowhere', log });
  assert.is(both.invocations.kind, 'headless-shell');
  assert.is(both.sessions.kind, 'chromium');
  assert.is(both.all.length, 2);
  const program = both.sessions.program;
  const named = await findEngines({ cacheDir: '/nowhere', log, program });
  assert.is(named.invocations.program, program);
  assert.is(named.all.length, 1);
});

find('where the jail supports the shell only, no other engine is used', async () => {
  const where = { cacheDir: '/nowhere', log, shellOnly: true };
  const found = await findEngines(where);
  assert.equal(
    found.all.map(({ kind }) => kind),
    ['headless-shell'],
  );
  const { sessions } = await findEngines({ cacheDir: '/nowhere', log });
  const error = await errorOf(findChrome({ ...where, program: sessions.program }));
  assert.instance(error, ChromeNotFound);
  assert.match((error as Error).message, /name a headless shell, or use bwrap/);
  const named = await findChrome({ ...where, program: found.invocations.program });
  assert.is(named.program, found.invocations.program);
});

find.run();
