/**
 * What a viewer does to the tab that it is shown, on the session of that tab's pictures, or to the
 * browser. Nothing is waited for: a page that hangs answers nothing, and hears no more than a few
 * dozen commands meanwhile.
 */
import type { TargetSession } from './attached.ts';
import type { Page, Pages } from './pages.ts';
import type { Pipe } from './pipe.ts';
import { isOpenUrl } from './police.ts';
import type { Said } from './viewer-input.ts';

/**
 * Ours: with so many commands that wait for their answer, what comes is dropped. Input stops first:
 * a page that waits in a dialog answers none of it, and the dialog's answer must get through.
 */
const INPUTS_MAX = 64;
const COMMANDS_MAX = 128;

export type Act = Exclude<Said, { kind: 'ack' }>;

/**
 * `notice` tells the viewer why something was not done. Without a session there is no tab to do it
 * to, and one can only be chosen.
 */
export function actions(
  { pipe, pages }: { pipe: Pipe; pages: Pages },
  notice: (text: string) => void,
): (said: Act, session: TargetSession | undefined) => void {
  let waiting = 0;
  const run = async (act: () => Promise<unknown>, max = COMMANDS_MAX): Promise<void> => {
    if (waiting >= max) return;
    waiting += 1;
    try {
      await act();
    } catch {
      // the page is gone or hangs, which the viewer sees
    } finally {
      waiting -= 1;
    }
  };
  const choose = (targetId: string): void => {
    if (openOf(pages, targetId) === undefined) return;
    pages.activate(targetId);
    void run(() => pipe.call('Target.activateTarget', { targetId }));
  };
  return (said, session) => {
    if (said.kind === 'tab') return choose(said.id);
    if (session === undefined) return;
    switch (said.kind) {
      case 'input':
        return void run(() => session.call(said.command.method, said.command.params), INPUTS_MAX);
      case 'navigate':
        if (isOpenUrl(said.url)) return void run(() => navigate(session, said.url, notice));
        return notice('Only http, https, about, data and blob addresses can be opened.');
      case 'history':
        return void run(() => goInHistory(session, said.by));
      case 'reload':
        return void run(() => session.call('Page.reload'));
      case 'dialog': {
        const { accept, text: promptText } = said;
        return void run(() => session.call('Page.handleJavaScriptDialog', { accept, promptText }));
      }
    }
  };
}

/** The page of that target, when it is open. */
export function openOf(pages: Pages, targetId: string): Page | undefined {
  return pages.open().find((page) => page.targetId === targetId);
}

async function navigate(
  session: TargetSession,
  url: string,
  notice: (text: string) => void,
): Promise<void> {
  const { errorText } = await session.call('Page.navigate', { url });
  // a navigation that another one overtook is none
  if (typeof errorText === 'string' && errorText !== 'net::ERR_ABORTED') notice(errorText);
}

async function goInHistory(session: TargetSession, by: number): Promise<void> {
  const { currentIndex, entries } = (await session.call('Page.getNavigationHistory')) as {
    currentIndex: number;
    entries: { id: number }[];
  };
  const entry = entries[currentIndex + by];
  if (entry) await session.call('Page.navigateToHistoryEntry', { entryId: entry.id });
}
