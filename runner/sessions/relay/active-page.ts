/** Which page a client brought to the front. */

import type { Command } from '../../browser/cdp/command-policy.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import type { RelayedChrome } from './relayed-chrome.ts';

/** Reports the page that the client activated: Chrome notifies no other session. */
export function reportActivePage(
  chrome: Pick<RelayedChrome, 'pipe'>,
  { method, params }: Command,
  targetId: string | undefined,
): void {
  const isHere = method === 'Page.bringToFront';
  if (!isHere && method !== 'Target.activateTarget') return;
  const front = isHere ? targetId : params?.['targetId'];
  // Rejects when Chrome is gone.
  openPages(chrome).then(
    (pages) => pages.activate(String(front)),
    () => undefined,
  );
}
