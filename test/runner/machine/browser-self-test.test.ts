/** The self-test of Chrome checks what is drawn, not only computed values. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { match } from 'uvu/assert';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { findChrome } from '../../../runner/browser/find.ts';
import { type Chrome, launchChrome } from '../../../runner/browser/launch.ts';
import { canNest } from '../../../runner/jail/backends/bwrap.ts';
import { openEgress } from '../../../runner/jail/egress/egress-proxy.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { probeChrome } from '../../../runner/machine/browser-self-test.ts';
import { errorOf } from '../../support/fault.ts';
import { log } from '../browser/lab.ts';

const NO_FONTS = '<?xml version="1.0"?><fontconfig></fontconfig>';

const probe = suite('runner/machine/browser-self-test');

probe('a Chrome that draws text works, and one without a font is refused', async () => {
  const runDir = mkdtempSync(join(tmpdir(), 'tabern-probe-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(runDir, { recursive: true, force: true }));
  const engine = await findChrome({ cacheDir: join(runDir, 'chromium'), log, system: [] });
  const jail = await openJail({ sandbox: 'bwrap', log });
  const launch = async () => {
    const egress = openEgress({ allow: cidrList([]), log });
    const hasSandbox = await canNest(jail, log);
    const chrome = await launchChrome({ engine, jail, hasSandbox, runDir, egress, log });
    cleanup.defer(() => chrome.close());
    return chrome;
  };
  match(await probeChrome(await launch(), log), /^HeadlessChrome\//);
  match(await probeChrome(withoutPictures(await launch(), 3), log), /^HeadlessChrome\//);

  writeFileSync(join(engine.home, 'fonts/fonts.conf'), NO_FONTS);
  const error = await errorOf(launch().then((chrome) => probeChrome(chrome, log)));
  match((error as Error).message, /draws no text|screenshot|crashed|ended/);
});

/** A Chrome that refuses its first screenshots, as before a page's first frame. */
function withoutPictures(chrome: Chrome, refusals: number): Chrome {
  let left = refusals;
  const write = (message: Buffer) => {
    const text = message.toString();
    const isRefused = text.includes('Page.captureScreenshot') && left-- > 0;
    return chrome.pipe.write(isRefused ? Buffer.from(text.replace('"png"', '"gif"')) : message);
  };
  return Object.create(chrome, {
    pipe: { value: Object.create(chrome.pipe, { write: { value: write } }) },
  });
}

probe.run();
