/**
 * One session: a Chrome of its own and the relay that clients reach it by.
 *
 * open -> clients come and go -> closed, once: the relay first, so that nobody drives a browser
 * that is ending, then Chrome. A Chrome that ends by itself aborts `lost`.
 */
import type { Log } from '../proto/log.ts';
import type { Chrome } from './chrome/launch.ts';
import { openRelay, type Relay } from './chrome/relay.ts';

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
   * Ends clients with a WebSocket close code, then Chrome. Resolves when both are gone; once or
   * many times.
   */
  close(code: number, reason: string): Promise<void>;
};

/** Rejects when no Chrome could be had, or with the signal's reason. */
export async function openSession(
  options: { chromes: Chromes; log: Log; now: () => number },
  signal: AbortSignal,
): Promise<Session> {
  const { chromes, log, now } = options;
  const chrome = await chromes.take({}, signal);
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
    close(code, reason) {
      relay.close(code, reason);
      closing ??= end(chrome);
      return closing;
    },
  };
}

/** Nobody keeps this profile, so Chrome gets no time to write it: that would cost 40 to 100 ms. */
async function end(chrome: Chrome): Promise<void> {
  const closed = chrome.close();
  chrome.kill();
  await closed;
}
