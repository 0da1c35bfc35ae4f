/**
 * What a viewer does to the tab that it is shown, on the session of that tab's pictures, or to the
 * browser. Nothing is waited for: a page that hangs answers nothing, and hears no more than a few
 * dozen commands meanwhile.
 */

import { isOpenUrl } from '../../browser/cdp/command-policy.ts';
import type { Page, Pages } from '../../browser/cdp/pages.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import type { CallOptions, TargetSession } from '../../browser/cdp/target-session.ts';
import type { ViewerMessage } from './input.ts';

/**
 * Ours: with so many commands that wait for their answer, what comes is dropped. Input stops first:
 * a page that waits in a dialog answers none of it, and the dialog's answer must get through.
 */
const INPUTS_MAX = 64;
const COMMANDS_MAX = 128;

/** A dialog goes with its page: asked again, this would answer one that nobody has seen. */
const ONCE: CallOptions = { signal: AbortSignal.abort() };

export type ViewerAction = Exclude<ViewerMessage, { kind: 'ack' }>;

/**
 * `notice` tells the viewer why something was not done. Without a session there is no tab to do it
 * to, and one can only be chosen.
 */
export function actions(
  { pipe, pages }: { pipe: Pipe; pages: Pages },
  notice: (text: string) => void,
): (message: ViewerAction, session: TargetSession | undefined) => void {
  let waiting = 0;
  let navigation = new AbortController();
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
    if (openPage(pages, targetId) === undefined) return;
    pages.activate(targetId);
    void run(() => pipe.call('Target.activateTarget', { targetId }));
  };
  /** What was asked for before, and not done yet, must not be done after it. */
  const navigateOnce = (act: (options: CallOptions) => Promise<unknown>): void => {
    navigation.abort();
    navigation = new AbortController();
    void run(() => act({ signal: navigation.signal }));
  };
  return (message, session) => {
    if (message.kind === 'tab') return choose(message.id);
    if (session === undefined) return;
    switch (message.kind) {
      case 'input':
        return void run(
          () => session.call(message.command.method, message.command.params),
          INPUTS_MAX,
        );
      case 'navigate':
        if (isOpenUrl(message.url))
          return navigateOnce(() => navigate(session, message.url, notice));
        return notice('Only http, https, about, data and blob addresses can be opened.');
      case 'history':
        return navigateOnce((options) => goInHistory(session, message.by, options));
      case 'reload':
        return navigateOnce((options) => session.call('Page.reload', {}, options));
      case 'dialog': {
        const { accept, text: promptText } = message;
        const params = { accept, promptText };
        return void run(() => session.call('Page.handleJavaScriptDialog', params, ONCE));
      }
    }
  };
}

/** The page of that target, when it is open. */
export function openPage(pages: Pages, targetId: string): Page | undefined {
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

async function goInHistory(
  session: TargetSession,
  by: number,
  options: CallOptions,
): Promise<void> {
  const history = (await session.call('Page.getNavigationHistory', {}, options)) as {
    currentIndex: number;
    entries: { id: number }[];
  };
  const entry = history.entries[history.currentIndex + by];
  if (entry === undefined || options.signal?.aborted) return;
  await session.call('Page.navigateToHistoryEntry', { entryId: entry.id }, options);
}
