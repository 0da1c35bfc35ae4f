/**
 * The state that a browser drops when it ends and a context keeps: session cookies, and the
 * sessionStorage of open pages. It is stored as tabern-session.json in the user-data directory.
 *
 * sessionStorage belongs to one tab: for each origin the first page's is kept, and the first page
 * of the next session gets it, before any client connects. Chrome sets it for a document of that
 * origin only, so the page visits an empty document per origin without any network request; origins
 * in the page's history that are not open are read in the same way.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openVisits } from '../cdp/empty-documents.ts';
import type { Pipe } from '../cdp/pipe.ts';
import { type Attached, attach } from '../cdp/target-session.ts';

const FILE = 'tabern-session.json';
/** In bytes of the file. Ours: Chrome allows an origin 10 MiB, and few use 10 KiB. */
const FILE_MAX_BYTES = 16 << 20;
/** Ours: a visit takes about 10 ms. */
const ORIGINS_MAX = 50;
const PAGES_MAX = 20;
/** For responses at a start. Ours: the machine may be busy, and a login depends on it. */
const PATIENT = { timeoutMs: 10_000 };
/** For all pages together, plus one call. Ours: a page that hangs uses 2 s of it. */
const PAGES_TIMEOUT_MS = 5_000;

type Cookie = { name: string; value: string; domain: string; path: string };
type Items = [key: string, value: string][];
export type SessionState = { cookies: Cookie[]; storage: Record<string, Items> };

/**
 * Reads the state of a Chrome that is about to be closed. Pages that do not respond are left out.
 */
export async function readState(pipe: Pipe): Promise<SessionState> {
  const { cookies } = (await pipe.call('Storage.getCookies')) as { cookies: Kept[] };
  const storage: Record<string, Items> = {};
  const deadline = performance.now() + PAGES_TIMEOUT_MS;
  for (const targetId of (await pagesOf(pipe)).slice(0, PAGES_MAX)) {
    if (performance.now() > deadline) break;
    try {
      await using page = await attach(pipe, targetId);
      await readPage(page, storage, deadline);
    } catch {
      // it closed meanwhile, or hangs: the other pages and the profile are worth saving
    }
  }
  return { cookies: cookies.filter(({ session }) => session).map(settable), storage };
}

/** Restores the state in a Chrome without clients. Returns what could not be restored. */
export async function restoreState(pipe: Pipe, state: SessionState): Promise<string[]> {
  const problems: string[] = [];
  const cookies = await setCookies(pipe, state.cookies);
  if (cookies > 0) problems.push(`${cookies} session cookies could not be restored`);
  const origins = Object.entries(state.storage).slice(0, ORIGINS_MAX);
  const [targetId] = origins.length === 0 ? [] : await pagesOf(pipe);
  if (targetId === undefined) return problems;
  try {
    await using page = await attach(pipe, targetId);
    await using visits = await openVisits(page, PATIENT);
    for (const [origin, items] of origins) {
      await visits.to(`${origin}/`);
      const storageId = { securityOrigin: origin, isLocalStorage: false };
      await Promise.all(
        items.map(([key, value]) =>
          page.call('DOMStorage.setDOMStorageItem', { storageId, key, value }, PATIENT),
        ),
      );
    }
    await visits.to('about:blank');
    await page.call('Page.resetNavigationHistory', {}, PATIENT);
  } catch {
    problems.push('the sessionStorage could not be restored');
  }
  return problems;
}

// --- the file ---

export async function writeState(dir: string, state: SessionState): Promise<void> {
  await writeFile(join(dir, FILE), JSON.stringify(state), { mode: 0o600 });
}

/** Reads and removes the file. Undefined when it is missing or invalid. */
export async function takeState(dir: string): Promise<SessionState | undefined> {
  const path = join(dir, FILE);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined || text.length > FILE_MAX_BYTES) return undefined;
  await rm(path);
  try {
    const { cookies, storage } = JSON.parse(text) as Partial<SessionState>;
    return {
      cookies: Array.isArray(cookies) ? cookies.filter(isObject) : [],
      storage: Object.fromEntries(Object.entries(storage ?? {}).filter(isKept)),
    };
  } catch {
    return undefined; // a client's archive may contain anything under that name
  }
}

function isKept([origin, items]: [string, unknown]): boolean {
  const isPair = (item: unknown): boolean =>
    Array.isArray(item) && item.length === 2 && item.every((text) => typeof text === 'string');
  return isWebOrigin(origin) && Array.isArray(items) && items.every(isPair);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

// --- cookies ---

type Kept = Cookie & { session: boolean } & Record<string, unknown>;

/** The members that Storage.setCookies accepts of what Storage.getCookies returns. */
function settable(cookie: Kept): Cookie {
  const { size: _, session: __, expires: ___, ...rest } = cookie;
  return rest;
}

/** A refused cookie must not affect the others. Returns how many were refused. */
async function setCookies(pipe: Pipe, cookies: readonly Cookie[]): Promise<number> {
  if (cookies.length === 0) return 0;
  const all = await pipe.call('Storage.setCookies', { cookies }).catch(() => undefined);
  if (all !== undefined) return 0;
  let refused = 0;
  for (const cookie of cookies) {
    await pipe.call('Storage.setCookies', { cookies: [cookie] }).catch(() => {
      refused += 1;
    });
  }
  return refused;
}

// --- pages ---

type Target = { targetId: string; type: string; browserContextId?: string };

/** Of the profile: a client's own browser contexts exist in memory only. */
async function pagesOf(pipe: Pipe): Promise<string[]> {
  const [{ targetInfos }, { browserContextIds }] = (await Promise.all([
    pipe.call('Target.getTargets'),
    pipe.call('Target.getBrowserContexts'),
  ])) as [{ targetInfos: Target[] }, { browserContextIds: string[] }];
  return targetInfos
    .filter(({ type, browserContextId = '' }) => {
      return type === 'page' && !browserContextIds.includes(browserContextId);
    })
    .map(({ targetId }) => targetId);
}

async function readPage(
  page: Attached,
  storage: Record<string, Items>,
  deadline: number,
): Promise<void> {
  const read = async (origin: string): Promise<void> => {
    const storageId = { securityOrigin: origin, isLocalStorage: false };
    const { entries } = await page.call('DOMStorage.getDOMStorageItems', { storageId });
    if ((entries as Items).length > 0) storage[origin] = entries as Items;
  };
  const { frameTree } = await page.call('Page.getFrameTree');
  const { securityOrigin } = (frameTree as { frame: { securityOrigin: string } }).frame;
  if (isWebOrigin(securityOrigin) && !(securityOrigin in storage)) await read(securityOrigin);
  const { entries } = await page.call('Page.getNavigationHistory');
  const urls = (entries as { url: string }[]).map(({ url }) => URL.parse(url)?.origin ?? '');
  const before = [...new Set(urls)].filter((url) => isWebOrigin(url) && url !== securityOrigin);
  if (before.length === 0) return;
  await using visits = await openVisits(page);
  for (const origin of before.slice(-ORIGINS_MAX)) {
    if (origin in storage) continue;
    if (performance.now() > deadline) return;
    await visits.to(`${origin}/`);
    await read(origin);
  }
}

function isWebOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.parse(text)?.origin === text;
}
