/** Settings of every browser context of a session, whichever client created it. */
import type { RelayedChrome } from './relayed-chrome.ts';

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
