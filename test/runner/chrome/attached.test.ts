/** Commands of our own to one page of a real Chrome. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/must.ts';
import { openTargetSession } from '../../../runner/chrome/attached.ts';
import { openPages } from '../../../runner/chrome/pages.ts';
import type { Pipe } from '../../../runner/chrome/pipe.ts';
import { errorOf } from '../../support/fault.ts';
import { openLab } from './lab.ts';

const test = suite('runner/chrome/attached');

test('no command is refused while a page goes from one site to another', async () => {
  for (const launch of [{}, { program: '/usr/bin/chromium' }]) {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const { session } = must((await openPages(lab.chrome)).active, 'the default page');
    await session.call('Page.enable');
    const sites = [lab.siteUrl, lab.siteUrl.replace('127.0.0.1', 'localhost')];
    for (const url of [...sites, ...sites]) {
      let isThere = false;
      const loaded = session.once('Page.loadEventFired').finally(() => {
        isThere = true;
      });
      const going = session.call('Page.navigate', { url });
      while (!isThere) await session.call('Page.getNavigationHistory');
      await Promise.all([loaded, going]);
    }
    const { entries } = await session.call('Page.getNavigationHistory');
    assert.is((entries as unknown[]).length, 5); // about:blank, and all four
  }
});

test('what Chrome refuses for another reason rejects at once, as it says', async () => {
  await using lab = await openLab({ allow: [] });
  const { session } = must((await openPages(lab.chrome)).active, 'the default page');
  const answer = session.call('Page.handleJavaScriptDialog', { accept: true });
  assert.match(String(await errorOf(answer)), /No dialog is showing/);
});

test('what is refused so without end is asked until its time is over', async () => {
  const asked: number[] = [];
  let tell: (raw: Buffer) => void = () => undefined;
  const error = { message: 'Not attached to an active page' };
  const pipe: Pick<Pipe, 'claim' | 'write' | 'release'> = {
    claim: (_, listener) => {
      tell = listener;
    },
    write(message) {
      const { id } = JSON.parse(message) as { id: number };
      asked.push(id);
      setImmediate(() => tell(Buffer.from(JSON.stringify({ id, error }))));
      return true;
    },
    release: () => undefined,
  };
  const session = openTargetSession(pipe as Pipe, 'session');
  const answer = await errorOf(session.call('Page.reload', {}, 200));
  assert.match(String(answer), /the answer to Page.reload did not come in 200 ms/);
  assert.ok(asked.length > 1);
  await errorOf(session.call('Page.reload', {}, 100));
  assert.ok(asked.lastIndexOf(1) < asked.indexOf(2), String(asked));
  session.end();
  assert.match(String(await errorOf(session.call('Page.reload'))), /the target is gone/);
});

test.run();
