/** Opens one page in the first tab of a session's Chrome. For the command `tabern try`. */
import CDP from 'chrome-remote-interface';

/** Ours: for a page of a slow site. */
const LOAD_MS = 60_000;

export type Visit = {
  title: string;
  /** The final address, after redirects. */
  url: string;
  /** Disconnects from the session. */
  close(): Promise<void>;
};

/** Throws with Chrome's error when the page cannot be opened. */
export async function visit(connectUrl: string, url: string): Promise<Visit> {
  const client = await CDP({ target: connectUrl, local: true });
  try {
    const { targetInfos } = await client.Target.getTargets({});
    const page = targetInfos.find(({ type }) => type === 'page');
    if (page === undefined) throw new Error('the session has no page');
    const { targetId } = page;
    const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true });
    await client.send('Page.enable', undefined, sessionId);
    await load(client, sessionId, url);
    const expression = 'JSON.stringify([document.title, location.href])';
    const { result } = await client.send('Runtime.evaluate', { expression }, sessionId);
    const [title = '', at = url] = JSON.parse(String(result.value)) as string[];
    return { title, url: at, close: () => client.close() };
  } catch (error) {
    await client.close();
    throw error;
  }
}

async function load(client: CDP.Client, sessionId: string, url: string): Promise<void> {
  const { promise: loaded, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(reject, LOAD_MS, new Error('the page did not load in time'));
  client.on('disconnect', () => reject(new Error('the session ended')));
  client.on('event', ({ method }) => {
    if (method === 'Page.loadEventFired') resolve();
  });
  try {
    const { errorText } = await client.send('Page.navigate', { url }, sessionId);
    if (errorText !== undefined) throw new Error(errorText);
    await loaded;
  } finally {
    loaded.catch(() => undefined);
    clearTimeout(timer);
  }
}
