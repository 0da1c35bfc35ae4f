/** The part of a Chrome that a relay uses, and what it reports or sets there for all clients. */
import type { Command } from '../../browser/cdp/command-policy.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import type { Chrome } from '../../browser/launch.ts';

export type RelayedChrome = Pick<Chrome, 'pipe' | 'paths' | 'proxies' | 'exitReason'> & {
  egress: Pick<Chrome['egress'], 'errors' | 'deniedHosts'>;
};

/** Reports the page that the client activated: Chrome notifies no other session. */
export function reportActivePage(
  chrome: RelayedChrome,
  { method, params }: Command,
  targetId: string | undefined,
): void {
  const isHere = method === 'Page.bringToFront';
  if (!isHere && method !== 'Target.activateTarget') return;
  const front = isHere ? targetId : params?.['targetId'];
  if (typeof front !== 'string') return;
  // Rejects when Chrome is gone.
  openPages(chrome).then(
    (pages) => pages.activate(front),
    () => undefined,
  );
}

/**
 * When a client disconnects, Chrome drops the client's download settings and stops keeping
 * downloads.
 */
export async function resetDownloadBehavior(chrome: RelayedChrome): Promise<void> {
  void setDownloadBehavior(chrome);
  // Rejects when Chrome is gone.
  const { browserContextIds } = await chrome.pipe
    .call('Target.getBrowserContexts')
    .catch(() => ({ browserContextIds: [] }));
  for (const id of browserContextIds as string[]) void setDownloadBehavior(chrome, id);
}

/** Applies to the default context when no id is given. */
export async function setDownloadBehavior(
  { pipe, paths }: RelayedChrome,
  browserContextId?: string,
): Promise<void> {
  const behavior = { behavior: 'allowAndName', downloadPath: paths.downloads };
  const params = { ...behavior, eventsEnabled: true, browserContextId };
  // Rejects when the context or Chrome is gone; nothing is left to set then.
  await pipe.call('Browser.setDownloadBehavior', params).catch(() => undefined);
}
