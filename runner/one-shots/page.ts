/**
 * The page of a one-shot, over CDP: its first tab, set up as the request wants it, loaded until the
 * conditions of the request hold. A dialog is dismissed. When the time is over, or the page closes
 * itself or crashes, every wait ends with a Failure. Dispose of the page to close the connection.
 */
import connect from 'chrome-remote-interface';
import type { OneShotParams, Seen } from '../../proto/one-shots/messages.ts';
import { Failure, navigationFailure } from './failure.ts';

/** Commands are sent by name: without its description a connection is ready 5 ms earlier. */
const NO_PROTOCOL = { version: { major: '1', minor: '3' }, domains: [] };
/** By the names of CDP's lifecycle events. */
const LIFECYCLE = {
  load: 'load',
  domcontentloaded: 'DOMContentLoaded',
  networkidle: 'networkIdle',
} as const;
/** Ours: a loaded page gets the element by a script soon, or much later. */
const SELECTOR_POLL_MS = 50;
/** Ours: what was seen of a page that may hang. */
const SEEN_MS = 500;
const NO_PAGE: Seen = { url: 'about:blank', title: '' };

// biome-ignore lint/suspicious/noExplicitAny: results are read member by member.
type Result = any;

export type Page = AsyncDisposable & {
  /** Rejects with a Failure when the time is over or the page is gone. */
  send(method: string, params?: object): Promise<Result>;
  on(event: string, listener: (params: Result) => void): void;
  /** Loads the page. */
  load(params: OneShotParams): Promise<void>;
  /** Rejects with a Failure when there is no answer. */
  navigate(url: string): Promise<void>;
  /** Address, title and status now. */
  seen(): Promise<Seen>;
  /** The result of the function in the page, out of reach of the page's scripts. */
  evaluate(declaration: string, ...args: readonly unknown[]): Promise<Result>;
};

/** What has happened to the main frame so far. */
type Progress = {
  names: Set<string>;
  status: number | undefined;
  /** The address of its last request: after redirects. */
  requested: string | undefined;
  /** The condition that is waited for. */
  awaited: string;
  changed: () => void;
};

/** Connects to the session's first tab. */
export async function openPage(connectUrl: string, timeoutMs: number): Promise<Page> {
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => undefined); // waits race with it; there may be none
  const progress: Progress = {
    names: new Set(),
    status: undefined,
    requested: undefined,
    awaited: '',
    changed() {},
  };
  const startedAt = performance.now();
  const timer = setTimeout(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const missing = progress.awaited || 'its connection';
    over.reject(new Failure('timeout', `The page did not reach ${missing} within ${seconds} s`));
  }, timeoutMs);
  const client = await connect({ target: connectUrl, protocol: NO_PROTOCOL as never });
  const raw = client.send.bind(client) as (...args: unknown[]) => Promise<Result>;
  const { targetInfos } = await raw('Target.getTargets');
  const [{ targetId }] = targetInfos.filter(({ type }: { type: string }) => type === 'page');
  const { sessionId } = await raw('Target.attachToTarget', { targetId, flatten: true });
  const on: Page['on'] = (event, listener) => client.on(`${event}.${sessionId}` as never, listener);
  const send: Page['send'] = (method, params = {}) =>
    Promise.race([raw(method, params, sessionId), over.promise]);
  const gone = (why: string) => over.reject(new Failure('unreachable', `The page ${why}.`));
  client.on('Target.detachedFromTarget' as never, () => gone('closed itself'));
  on('Inspector.targetCrashed', () => gone('crashed'));
  client.on('disconnect', () => gone('was lost with its browser'));
  watch({ send, on }, targetId, progress);
  const seen = async (): Promise<Seen> => {
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), SEEN_MS).unref();
    });
    const info = raw('Target.getTargetInfo', { targetId }).catch(() => undefined);
    const { url, title } = (await Promise.race([info, late]))?.targetInfo ?? NO_PAGE;
    return { url, title, status: progress.status };
  };
  return {
    send,
    on,
    seen,
    load: (params) => load({ send, on }, targetId, { params, progress, over: over.promise }),
    navigate: (url) => navigate(send, url, progress),
    evaluate: (declaration, ...args) => evaluate(send, targetId, { declaration, args }),
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await client.close();
    },
  };
}

type Tab = Pick<Page, 'send' | 'on'>;

/** Follows the events of the main frame, whose id is that of its target. */
function watch({ send, on }: Tab, frameId: string, progress: Progress): void {
  on('Page.lifecycleEvent', (event) => {
    if (event.frameId !== frameId) return;
    if (event.name === 'init') progress.names.clear(); // of the document before
    progress.names.add(event.name);
    progress.changed();
  });
  on('Network.requestWillBeSent', ({ type, frameId: id, request }) => {
    if (type === 'Document' && id === frameId) progress.requested = request.url;
  });
  on('Network.responseReceived', ({ type, frameId: id, response }) => {
    if (type === 'Document' && id === frameId) progress.status = response.status;
  });
  on('Page.javascriptDialogOpening', () => {
    send('Page.handleJavaScriptDialog', { accept: false }).catch(() => undefined);
  });
}

type Loading = { params: OneShotParams; progress: Progress; over: Promise<never> };

async function load(tab: Tab, frameId: string, { params, progress, over }: Loading): Promise<void> {
  const { url, html, waitUntil, waitForSelector } = params;
  const { send } = tab;
  progress.awaited = 'its first answer';
  await Promise.all(setUp(tab, params));
  if (params.action === 'fetch') return; // it navigates itself
  progress.names.clear();
  if (url === undefined) await send('Page.setDocumentContent', { frameId, html });
  else await navigate(send, url, progress);
  if (waitUntil !== undefined) {
    progress.awaited = `"${waitUntil}"`;
    while (!progress.names.has(LIFECYCLE[waitUntil])) {
      const next = new Promise<void>((resolve) => {
        progress.changed = resolve;
      });
      await Promise.race([next, over]);
    }
  }
  if (waitForSelector !== undefined) {
    progress.awaited = `an element that matches ${JSON.stringify(waitForSelector)}`;
    await untilElement(send, waitForSelector);
  }
  progress.awaited = 'the end of its answer';
}

async function navigate(send: Page['send'], url: string, progress: Progress): Promise<void> {
  const { errorText } = await send('Page.navigate', { url });
  // an answer of that status and without content is Chrome's own page
  if (!errorText || errorText === 'net::ERR_HTTP_RESPONSE_CODE_FAILURE') return;
  const { requested = url } = progress;
  const isUnexplained = errorText === 'net::ERR_ADDRESS_UNREACHABLE';
  if (!isUnexplained || requested === URL.parse(url)?.href) throw navigationFailure(errorText);
  // the relay explains why an address is refused to the command that names it
  const { errorText: explained } = await send('Page.navigate', { url: requested });
  throw navigationFailure(explained || errorText);
}

/** All at once: Chrome applies them in this order, before the navigation. */
function setUp({ send }: Tab, params: OneShotParams): Promise<Result>[] {
  const { viewport, cookies, headers, userAgent, url } = params;
  const ofPage = url === undefined ? {} : { url };
  return [
    send('Page.enable'),
    send('Page.setLifecycleEventsEnabled', { enabled: true }),
    send('Network.enable'),
    send('Emulation.setDeviceMetricsOverride', { ...viewport, mobile: false }),
    ...(cookies.length === 0 ? [] : [setCookies(send, ofPage, cookies)]),
    ...(Object.keys(headers).length === 0
      ? []
      : [send('Network.setExtraHTTPHeaders', { headers })]),
    ...(userAgent === undefined ? [] : [send('Network.setUserAgentOverride', { userAgent })]),
  ];
}

async function setCookies(
  send: Page['send'],
  ofPage: { url?: string },
  given: OneShotParams['cookies'],
): Promise<void> {
  const cookies = given.map((one) => ((one.url ?? one.domain) ? one : { ...one, ...ofPage }));
  await send('Network.setCookies', { cookies }).catch((error: unknown) => {
    if (error instanceof Failure) throw error;
    throw new Failure('field', 'has a cookie that Chrome does not accept.', 'cookies');
  });
}

async function untilElement(send: Page['send'], selector: string): Promise<void> {
  for (;;) {
    const found = await elementOf(send, selector, 'waitForSelector');
    if (found !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, SELECTOR_POLL_MS));
  }
}

/** Its node id; undefined for none. Throws a Failure for what is no selector. */
export async function elementOf(
  send: Page['send'],
  selector: string,
  field: string,
): Promise<number | undefined> {
  const { root } = await send('DOM.getDocument', { depth: 0 });
  try {
    const found = await send('DOM.querySelector', { nodeId: root.nodeId, selector });
    return found.nodeId === 0 ? undefined : found.nodeId;
  } catch (error) {
    if (error instanceof Failure) throw error;
    // the document may have been replaced since
    if (/find node/i.test((error as Error).message)) return undefined;
    throw new Failure('field', 'is not a CSS selector.', field);
  }
}

async function evaluate(
  send: Page['send'],
  frameId: string,
  { declaration, args }: { declaration: string; args: readonly unknown[] },
): Promise<Result> {
  const { executionContextId } = await send('Page.createIsolatedWorld', { frameId });
  const { result, exceptionDetails } = await send('Runtime.callFunctionOn', {
    functionDeclaration: declaration,
    arguments: args.map((value) => ({ value })),
    executionContextId,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Failure('unreachable', 'The page could not be read.');
  return result.value;
}
