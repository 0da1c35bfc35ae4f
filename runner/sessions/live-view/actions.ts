/**
 * Applies a viewer's actions to the tab that the viewer sees, on that tab's screencast session, or
 * to the browser. No action is awaited, as a hanging page does not respond; the number of commands
 * without a response is limited.
 */

import { isOpenUrl } from '../../browser/cdp/command-policy.ts';
import type { Pages } from '../../browser/cdp/pages.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import type { CallOptions, TargetSession } from '../../browser/cdp/target-session.ts';
import type { ViewerMessage } from './input.ts';

/**
 * Ours: with this many pending commands, further ones are dropped. Input stops first: a page in a
 * dialog responds to no input, and the response to the dialog must get through.
 */
const INPUTS_MAX = 64;
const COMMANDS_MAX = 128;

/** Never retried: a dialog is closed with its page, and a retry would close another one unseen. */
const ONCE: CallOptions = { signal: AbortSignal.abort() };

export type ViewerAction = Exclude<ViewerMessage, { kind: 'ack' | 'done' }>;

/**
 * `notice` reports to the viewer why an action was not done. Without a session no tab is shown, and
 * the only possible action is choosing one.
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
      // the page is gone or hangs, which the viewer can see
    } finally {
      waiting -= 1;
    }
  };
  const choose = (targetId: string): void => {
    if (pages.byTarget(targetId) === undefined) return;
    pages.activate(targetId);
    void run(() => pipe.call('Target.activateTarget', { targetId }));
  };
  /** Cancels the previous navigation, so that it cannot happen after this one. */
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

async function navigate(
  session: TargetSession,
  url: string,
  notice: (text: string) => void,
): Promise<void> {
  const { errorText } = await session.call('Page.navigate', { url });
  // ERR_ABORTED: another navigation replaced this one
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
