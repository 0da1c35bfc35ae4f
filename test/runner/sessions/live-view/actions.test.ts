/** Actions of a viewer while its page navigates: the last one counts. */
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

test('a later action cancels a waiting history step or reload', () => {
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

test('a history step waits for the history, and a later action cancels it', async () => {
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

test('the response to a dialog is not retried', () => {
  const tab = openTab();
  tab.act({ kind: 'dialog', accept: true, text: '' });
  assert.equal(tab.asked(), [['Page.handleJavaScriptDialog', true]]);
});

test('a refused URL cancels nothing', () => {
  const tab = openTab();
  tab.act({ kind: 'reload' });
  tab.act({ kind: 'navigate', url: 'file:///etc/passwd' });
  assert.equal(tab.asked(), [['Page.reload', false]]);
});

test.run();
