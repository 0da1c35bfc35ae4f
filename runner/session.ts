/**
 * One session: a Chrome of its own and the relay that clients reach it by.
 *
 * open -> clients come and go -> closed, once: the relay first, so that nobody drives a browser
 * that is ending, then Chrome, then its context is saved. A Chrome that ends by itself aborts
 * `lost`.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../proto/log.ts';
import type { Chrome } from './chrome/launch.ts';
import { openRelay, type Relay } from './chrome/relay.ts';
import type { Context } from './contexts.ts';

/** As much of the pool as a session uses. */
export type Chromes = {
  take(wanted: { profileDir?: string }, signal: AbortSignal): Promise<Chrome>;
};

export type Session = {
  relay: Relay;
  /** When its Chrome was ready, in ms since 1970. */
  startedAt: number;
  /** Aborts when Chrome ended before the session was closed. */
  lost: AbortSignal;
  /**
   * Ends clients with a WebSocket close code, then Chrome; saves its context first when it has one
   * to save and `keep` says so. Resolves when all is gone; once or many times: the first counts.
   */
  close(code: number, reason: string, keep: boolean): Promise<void>;
};

/**
 * Rejects when no Chrome could be had or the context did not load, or with the signal's reason.
 */
export async function openSession(
  options: {
    chromes: Chromes;
    log: Log;
    now: () => number;
    /** Loads the context that the session starts from. */
    loadContext?: ((signal: AbortSignal) => Promise<Context>) | undefined;
  },
  signal: AbortSignal,
): Promise<Session> {
  const { chromes, log, now, loadContext } = options;
  const context = await loadContext?.(signal);
  const chrome = await startIn(context, chromes, signal);
  const relay = openRelay(chrome, { log });
  const lost = new AbortController();
  let closing: Promise<void> | undefined;
  void chrome.pipe.closed.then(() => {
    if (closing === undefined) lost.abort(new Error('the browser ended'));
  });
  return {
    relay,
    startedAt: now(),
    lost: lost.signal,
    close(code, reason, keep) {
      relay.close(code, reason);
      closing ??= end(chrome, context, { keep, isLost: lost.signal.aborted });
      return closing;
    },
  };
}

async function startIn(
  context: Context | undefined,
  chromes: Chromes,
  signal: AbortSignal,
): Promise<Chrome> {
  if (context === undefined) return await chromes.take({}, signal);
  const { profileDir } = context;
  let chrome: Chrome | undefined;
  try {
    chrome = await chromes.take({ profileDir }, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      // headless-shell does not start with a broken one, and makes another (browser.md 6)
      await rm(join(profileDir, 'Local State')).catch(() => {
        throw error;
      });
      return await chromes.take({ profileDir }, signal);
    });
    await context.restore(chrome);
    return chrome;
  } catch (error) {
    chrome?.kill();
    await chrome?.exited;
    await context[Symbol.asyncDispose]();
    throw error;
  }
}

async function end(
  chrome: Chrome,
  context: Context | undefined,
  { keep, isLost }: { keep: boolean; isLost: boolean },
): Promise<void> {
  if (keep && context?.persist) {
    if (isLost) context.notSaved('the browser was lost');
    else await context.save(chrome);
  }
  // nobody keeps this profile any more, so Chrome gets no time to write it: that would cost 40 to
  // 100 ms
  const closed = chrome.close();
  chrome.kill();
  await closed;
  await context?.[Symbol.asyncDispose]();
}
