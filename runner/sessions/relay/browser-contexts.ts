/** What is true of every browser context of a session, whichever client has made it. */
import type { RelayedChrome } from './relayed-chrome.ts';

/** Chrome forgets what a client that leaves had said of downloads, and keeps none from then on. */
export async function resetDownloadBehavior(chrome: RelayedChrome): Promise<void> {
  void setDownloadBehavior(chrome);
  // rejects when Chrome is gone
  const { browserContextIds } = await chrome.pipe
    .call('Target.getBrowserContexts')
    .catch(() => ({ browserContextIds: [] }));
  for (const id of browserContextIds as string[]) void setDownloadBehavior(chrome, id);
}

/** Of the default context when none is named. */
export async function setDownloadBehavior(
  { pipe, paths }: RelayedChrome,
  browserContextId?: string,
): Promise<void> {
  const behavior = { behavior: 'allowAndName', downloadPath: paths.downloads };
  const params = { ...behavior, eventsEnabled: true, browserContextId };
  // rejects when the context or Chrome is gone, which is as good
  await pipe.call('Browser.setDownloadBehavior', params).catch(() => undefined);
}
