/** Commands of the runner to one page. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import { openTargetSession } from '../../../../runner/browser/cdp/target-session.ts';
import { errorOf } from '../../../support/fault.ts';
import { openLab, PATIENT } from '../lab.ts';

const test = suite('runner/browser/cdp/target-session');
const REFUSAL = 'Not attached to an active page';

test('no command fails while a page navigates to another site', async () => {
  for (const launch of [{}, { program: '/usr/bin/chromium' }]) {
    await using lab = await openLab({ allow: ['127.0.0.0/8'], ...launch });
    const { session } = must((await openPages(lab.chrome)).active, 'the default page');
    await session.call('Page.enable', {}, PATIENT);
    const sites = [lab.siteUrl, lab.siteUrl.replace('127.0.0.1', 'localhost')];
    for (const url of [...sites, ...sites]) {
      const loaded = session.once('Page.loadEventFired', PATIENT);
      let isThere = false;
      const going = Promise.all([session.call('Page.navigate', { url }, PATIENT), loaded]);
      const arrive = (): void => {
        isThere = true;
      };
      going.then(arrive, arrive);
      while (!isThere) await session.call('Page.getNavigationHistory', {}, PATIENT);
      await going;
    }
    const { entries } = await session.call('Page.getNavigationHistory', {}, PATIENT);
    assert.is((entries as unknown[]).length, 5); // about:blank, and all four
  }
});

test('any other error of Chrome rejects with its message', async () => {
  await using lab = await openLab({ allow: [] });
  const { session } = must((await openPages(lab.chrome)).active, 'the default page');
  const answer = session.call('Page.handleJavaScriptDialog', { accept: true }, PATIENT);
  assert.match(String(await errorOf(answer)), /No dialog is showing/);
});

/** A page that never arrives, and the calls that it received. */
function openBetween() {
  const asked: string[] = [];
  let answer: (raw: Buffer) => void = () => undefined;
  let lastId = 0;
  const pipe: Pick<Pipe, 'claim' | 'write' | 'release' | 'newId' | 'onUnknownSession'> = {
    newId: () => ++lastId,
    onUnknownSession: () => () => undefined,
    claim: (_, listener) => {
      answer = listener;
    },
    write(message) {
      const { id, method } = JSON.parse(message.toString()) as { id: number; method: string };
      asked.push(method);
      const said = JSON.stringify({ id, error: { message: REFUSAL } });
      queueMicrotask(() => answer(Buffer.from(said))); // before any timer
      return true;
    },
    release: () => undefined,
  };
  const fallSilent = (): void => {
    answer = () => undefined;
  };
  return { asked, fallSilent, session: openTargetSession(pipe as Pipe, 'session') };
}

test('a command that keeps failing is retried until its timeout', async () => {
  const { asked, session } = openBetween();
  const error = await errorOf(session.call('Page.reload', {}, { timeoutMs: 200 }));
  assert.is(String(error), `Error: ${REFUSAL}`);
  assert.ok(asked.length > 1);
  await errorOf(session.call('Page.close', {}, { timeoutMs: 200 }));
  assert.ok(asked.lastIndexOf('Page.reload') < asked.indexOf('Page.close'), asked.join());
});

test('an aborted command is not retried', async () => {
  const { asked, session } = openBetween();
  const wanted = new AbortController();
  const withdrawn = errorOf(session.call('Page.reload', {}, { ...PATIENT, signal: wanted.signal }));
  wanted.abort();
  assert.match(String(await withdrawn), /Error: Not attached to an active page$/);
  assert.equal(asked, ['Page.reload']);
});

test('a retried command without a response has the full timeout', async () => {
  const { session, fallSilent } = openBetween();
  const answer = errorOf(session.call('Page.reload', {}, { ...PATIENT, timeoutMs: 100 }));
  await Promise.resolve(); // it is refused
  fallSilent();
  assert.match(String(await answer), /no response to Page.reload within 100 ms/);
});

test('the end of a page rejects commands that wait for its next process', async () => {
  const { asked, session } = openBetween();
  const waiting = errorOf(session.call('Page.reload', {}, PATIENT));
  const event = errorOf(session.once('Page.loadEventFired', PATIENT));
  await errorOf(session.call('Page.close', {}, { timeoutMs: 100 }));
  session.end();
  const before = asked.length;
  for (const answer of [waiting, event, errorOf(session.call('Page.reload'))]) {
    assert.match(String(await answer), /the target is gone/);
  }
  const { session: other } = openBetween();
  await errorOf(other.call('Page.reload', {}, { timeoutMs: 200 })); // time for a call
  assert.is(asked.length, before);
});

test.run();
