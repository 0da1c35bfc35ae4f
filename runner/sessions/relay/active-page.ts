/** Which page a client has brought to the front. */

import type { Command } from '../../browser/cdp/command-policy.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import type { RelayedChrome } from './relayed-chrome.ts';

/** Which page its user now looks at: Chrome tells nobody else. */
export function reportActivePage(
  chrome: Pick<RelayedChrome, 'pipe'>,
  { method, params }: Command,
  targetId: string | undefined,
): void {
  const isHere = method === 'Page.bringToFront';
  if (!isHere && method !== 'Target.activateTarget') return;
  const front = isHere ? targetId : params?.['targetId'];
  // rejects when Chrome is gone
  openPages(chrome).then(
    (pages) => pages.activate(String(front)),
    () => undefined,
  );
}
