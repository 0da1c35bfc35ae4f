/** What a viewer asks for while its page goes elsewhere: the last wish counts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import type { Pages } from '../../../../runner/browser/cdp/pages.ts';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import type { TargetSession } from '../../../../runner/browser/cdp/target-session.ts';
import { actions } from '../../../../runner/sessions/live-view/actions.ts';

const test = suite('runner/sessions/live-view/actions');

function openTab() {
  const asked: { method: string; signal: AbortSignal | undefined }[] = [];
  const answers: PromiseWithResolvers<Record<string, unknown>>[] = [];
  const session: TargetSession = {
    call(method, _params, { signal } = {}) {
      asked.push({ method, signal });
      const answer = Promise.withResolvers<Record<string, unknown>>();
      answers.push(answer);
      return answer.promise;
    },
    on: () => () => undefined,
    once: async () => ({}),
  };
  const act = actions({ pipe: {} as Pipe, pages: {} as Pages }, () => undefined);
  return {
    act: (said: Parameters<typeof act>[0]) => act(said, session),
    asked: () => asked.map(({ method, signal }) => [method, signal?.aborted ?? false]),
    answer: (index: number, result: object) => must(answers[index], 'one').resolve({ ...result }),
  };
}

const ENTRIES = { currentIndex: 1, entries: [{ id: 7 }, { id: 8 }] };

test('a step back or a reload that still waits is not wanted after another wish', () => {
  const tab = openTab();
  tab.act({ kind: 'history', by: -1 });
  tab.act({ kind: 'reload' });
  assert.equal(tab.asked(), [
    ['Page.getNavigationHistory', true],
    ['Page.reload', false],
  ]);
  tab.act({ kind: 'navigate', url: 'https://example.com/' });
  assert.equal(tab.asked(), [
    ['Page.getNavigationHistory', true],
    ['Page.reload', true],
    ['Page.navigate', false],
  ]);
});

test('a step back is made when its page is known, and not after another wish', async () => {
  const tab = openTab();
  tab.act({ kind: 'history', by: -1 });
  tab.answer(0, ENTRIES);
  await new Promise(setImmediate);
  assert.equal(tab.asked()[1], ['Page.navigateToHistoryEntry', false]);
  tab.act({ kind: 'history', by: -1 });
  tab.act({ kind: 'navigate', url: 'https://example.com/' });
  tab.answer(2, ENTRIES);
  await new Promise(setImmediate);
  assert.equal(
    tab.asked().map(([method]) => method),
    [
      ...['Page.getNavigationHistory', 'Page.navigateToHistoryEntry'],
      ...['Page.getNavigationHistory', 'Page.navigate'],
    ],
  );
});

test('the answer to a dialog is for that one alone', () => {
  const tab = openTab();
  tab.act({ kind: 'dialog', accept: true, text: '' });
  assert.equal(tab.asked(), [['Page.handleJavaScriptDialog', true]]);
});

test('an address that is refused takes nothing back', () => {
  const tab = openTab();
  tab.act({ kind: 'reload' });
  tab.act({ kind: 'navigate', url: 'file:///etc/passwd' });
  assert.equal(tab.asked(), [['Page.reload', false]]);
});

test.run();
