/**
 * One session: a Chrome of its own, the relay that clients reach it by, the parts that watch it.
 *
 * open -> clients come and go -> closed, once: the relay first, so that nobody drives a browser
 * that is ending, then its parts, which tell core what they still hold, then its context is saved,
 * which ends Chrome, then its log -> discarded, when nothing of Chrome is left. A Chrome that ends
 * by itself aborts `lost`.
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import type { Log } from '../../proto/common/log.ts';
import { kept, step } from '../../proto/common/tracing.ts';
import { type Chrome, lossOf } from '../browser/launch.ts';
import type { TakeOptions } from '../browser/pool.ts';
import type { Context } from './context.ts';
import type { ProtocolRecorder } from './log/recorder.ts';
import { openRelay, type Relay, type RelayOptions } from './relay/relay.ts';

/** As much of the pool as a session uses. */
export type Chromes = {
  take(wanted: TakeOptions, signal: AbortSignal): Promise<Chrome>;
};

/** What watches a session while it is open. */
export type SessionComponent = {
  /**
   * Tells core what it still holds. Called once, when no client is left and Chrome still runs, or
   * is lost. Returns at once when nothing happened; never rejects.
   */
  close(): Promise<void>;
  /** As `end`, when the context has been saved: for who keeps what the others have to say. */
  closeLast?(): Promise<void>;
  /** Sees what passes between clients and Chrome. */
  recorder?: ProtocolRecorder;
  /** Serves the live view's socket; `target` is a page's target id, absent for the active page. */
  view?: ServeView;
  /** Puts a file where pages can read it, before it resolves; rejects with a Fault. */
  putUpload?: PutUpload;
};

export type ServeView = (upgrade: {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  target: string | undefined;
}) => void;

export type PutUpload = (name: string, content: Readable) => Promise<void>;

/** Called before the first client is let in. Rejects only when the session cannot be without it. */
export type OpenComponent = (chrome: Chrome) => Promise<SessionComponent>;

export type Session = Pick<SessionComponent, 'view' | 'putUpload'> & {
  relay: Relay;
  chrome: Chrome;
  /** When its Chrome was ready, in ms since 1970. */
  startedAt: number;
  /** Aborts when Chrome ended before the session was closed; its reason's message is lossOf. */
  lost: AbortSignal;
  /**
   * Ends clients with a WebSocket close code, then its parts; saves its context, which ends Chrome,
   * when it has one to save and `keep` says so. Resolves when core has all there is to tell; once
   * or many times: the first counts. `discard` must follow; one that rejects has discarded.
   */
  close(code: number, reason: string, keep: boolean): Promise<void>;
  /**
   * Ends what is left of Chrome. Settles when no process and no directory of it is left; rejects
   * when a directory could not be removed. Once or many times.
   */
  discard(): Promise<void>;
};

export type SessionOptions = {
  chromes: Chromes;
  log: Log;
  now: () => number;
  /** Loads the context that the session starts from. */
  loadContext?: ((signal: AbortSignal) => Promise<Context>) | undefined;
  /** What its Chrome is started with, beyond the context; nothing: a spare one will do. */
  wanted?: ((signal: AbortSignal) => Promise<TakeOptions>) | undefined;
  parts?: readonly OpenComponent[];
  /** What the relay is told beside the log. */
  relay?: Omit<RelayOptions, 'log'>;
};

/**
 * Rejects when no Chrome could be had or the context did not load, or with the signal's reason.
 */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  const { log, now, loadContext } = options;
  const wanted = (await options.wanted?.(signal)) ?? {};
  const context = await loadContext?.(signal);
  const chrome = await step('browser', () => startIn(context, { ...options, wanted }, signal));
  const parts = await openComponents(chrome, context, options.parts ?? []);
  const recorder = parts.find((part) => part.recorder)?.recorder;
  const relay = openRelay(chrome, { ...options.relay, log, recorder });
  const lost = new AbortController();
  let closing: Promise<void> | undefined;
  let discarding: Promise<void> | undefined;
  const discardOnce = (): Promise<void> => {
    discarding ??= discard(chrome, context);
    return discarding;
  };
  // who asks for it first may be a timer, or a poll of all the runner's releases
  const endOnce = kept((how: Parameters<typeof end>[1]) =>
    step('close', () => end({ chrome, context, parts }, how)),
  );
  void chrome.pipe.closed.then(() => {
    if (closing === undefined) lost.abort(new Error(lossOf(chrome)));
  });
  const view = parts.find((part) => part.view)?.view;
  const putUpload = parts.find((part) => part.putUpload)?.putUpload;
  return {
    relay,
    chrome,
    startedAt: now(),
    lost: lost.signal,
    ...(view === undefined ? {} : { view }),
    ...(putUpload === undefined ? {} : { putUpload }),
    close(code, reason, keep) {
      relay.close(code, reason);
      closing ??= endOnce({ keep, isLost: lost.signal.aborted }).catch(async (error: unknown) => {
        await discardOnce();
        throw error;
      });
      return closing;
    },
    discard: discardOnce,
  };
}

async function startIn(
  context: Context | undefined,
  { chromes, log, wanted }: { chromes: Chromes; log: Log; wanted: TakeOptions },
  signal: AbortSignal,
): Promise<Chrome> {
  if (context === undefined) return await chromes.take(wanted, signal);
  const { profileDir } = context;
  let chrome: Chrome | undefined;
  try {
    chrome = await chromes.take({ ...wanted, profileDir }, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      // headless-shell puts a broken one aside and exits; the next start makes another.
      // Any other failure is met again by the second start.
      await rm(join(profileDir, 'Local State'), { force: true });
      log.warn({ err: error }, 'a profile did not start: trying without its Local State');
      return await chromes.take({ ...wanted, profileDir }, signal);
    });
    await context.restore(chrome);
    return chrome;
  } catch (error) {
    await discard(chrome, context);
    throw error;
  }
}

/** All or none: when one does not open, the others are ended and Chrome with them. */
async function openComponents(
  chrome: Chrome,
  context: Context | undefined,
  wanted: readonly OpenComponent[],
): Promise<SessionComponent[]> {
  const opened = await Promise.allSettled(wanted.map((open) => open(chrome)));
  const parts = opened.flatMap((part) => (part.status === 'fulfilled' ? [part.value] : []));
  const failed = opened.find((part) => part.status === 'rejected');
  if (failed === undefined) return parts;
  await Promise.all(parts.map((part) => part.close()));
  await Promise.all(parts.map((part) => part.closeLast?.()));
  await discard(chrome, context);
  throw failed.reason;
}

/** Nobody keeps the profile any more: time to write it would cost 40 to 100 ms. */
async function discard(chrome: Chrome | undefined, context: Context | undefined): Promise<void> {
  chrome?.kill();
  await chrome?.exited;
  await context?.[Symbol.asyncDispose]();
}

type Open = { chrome: Chrome; context: Context | undefined; parts: readonly SessionComponent[] };

async function end(
  { chrome, context, parts }: Open,
  { keep, isLost }: { keep: boolean; isLost: boolean },
): Promise<void> {
  await Promise.all(parts.map((part) => part.close()));
  if (keep && context?.persist) {
    if (isLost) context.notSaved(lossOf(chrome));
    else await context.save(chrome);
  }
  await Promise.all(parts.map((part) => part.closeLast?.()));
}
