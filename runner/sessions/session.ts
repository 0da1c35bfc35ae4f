/**
 * One session: its Chrome, the relay between clients and Chrome, and its components.
 *
 * open -> closed, once -> discarded, when no process and no directory of Chrome is left. It closes
 * in this order: the relay, so that no client drives a browser that is ending; the components,
 * which send their remaining data to core; the context, whose save ends Chrome; the log. `lost`
 * aborts when Chrome ends by itself.
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import type { Log } from '../../proto/common/log.ts';
import { type Chrome, lossReason } from '../browser/launch.ts';
import type { ChromePool, TakeOptions } from '../browser/pool.ts';
import { kept, step } from '../common/steps.ts';
import type { Context } from './context.ts';
import type { Thumbnail } from './live-view/thumbnail.ts';
import type { ProtocolRecorder } from './log/recorder.ts';
import { openRelay, type Relay, type RelayOptions } from './relay/relay.ts';

/** The part of the pool that a session uses. */
export type Chromes = Pick<ChromePool, 'take'>;

/** Watches a session while it is open. */
export type SessionComponent = {
  /**
   * Sends the remaining data to core. Called once, after the last client was closed and before
   * Chrome is ended (or is lost). Never rejects.
   */
  close?(): Promise<void>;
  /** As `close`, after the context was saved: for the log, as saving the context may warn. */
  closeLast?(): Promise<void>;
  /** Receives the messages between clients and Chrome. */
  recorder?: ProtocolRecorder | undefined;
  /** Serves the live view's socket; `target` is a page's target id, absent for the active page. */
  view?: ServeView | undefined;
  /** Stores a file where pages can read it; rejects with a Fault. */
  putUpload?: PutUpload | undefined;
  /** A small picture of the active page. */
  thumbnail?: Thumbnail | undefined;
};

export type ServeView = (upgrade: {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  target: string | undefined;
}) => void;

export type PutUpload = (name: string, content: Readable) => Promise<void>;

/** Called before the first client. Rejects only when the session cannot do without it. */
export type OpenComponent = (chrome: Chrome) => Promise<SessionComponent>;

export type Session = Pick<SessionComponent, 'view' | 'putUpload' | 'thumbnail'> & {
  relay: Relay;
  chrome: Chrome;
  /** The time at which its Chrome was ready, in ms since 1970. */
  startedAt: number;
  /** Aborts when Chrome ends before the session is closed; the reason is for the user. */
  lost: AbortSignal;
  /**
   * Closes clients with a WebSocket close code, then the components; saves the context, which ends
   * Chrome, if it has one to save and `keep` is true. Resolves when core has received everything.
   * Only the first call counts. `discard` must follow; a `close` that rejects has discarded.
   */
  close(code: number, reason: string, keep: boolean): Promise<void>;
  /**
   * Ends what is left of Chrome. Resolves when no process and no directory of it is left; rejects
   * when a directory could not be removed. May be called repeatedly.
   */
  discard(): Promise<void>;
};

export type SessionOptions = {
  chromes: Chromes;
  log: Log;
  now: () => number;
  /** Loads the context that the session starts from. */
  loadContext?: ((signal: AbortSignal) => Promise<Context>) | undefined;
  /** For the start of its Chrome, beyond the context. Absent or empty: a spare Chrome is taken. */
  chromeOptions?: ((signal: AbortSignal) => Promise<TakeOptions>) | undefined;
  components?: readonly OpenComponent[];
  /** For the relay, beside the log. */
  relay?: Omit<RelayOptions, 'log'>;
};

/**
 * Rejects when no Chrome could be had or the context did not load, or with the signal's reason.
 */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  const { log, now, loadContext } = options;
  const wanted = (await options.chromeOptions?.(signal)) ?? {};
  const context = await loadContext?.(signal);
  const chrome = await step('browser', () => startIn(context, { ...options, wanted }, signal));
  const components = await openComponents(chrome, context, options.components ?? []);
  const recorder = components.find((component) => component.recorder)?.recorder;
  const relay = openRelay(chrome, { ...options.relay, log, recorder });
  const lost = new AbortController();
  let closing: Promise<void> | undefined;
  let discarding: Promise<void> | undefined;
  const discardOnce = (): Promise<void> => {
    discarding ??= discard(chrome, context);
    return discarding;
  };
  // the first caller may be a timer, or the poll for all releases of the runner
  const closeOnce = kept((how: Parameters<typeof close>[1]) =>
    step('close', () => close({ chrome, context, components }, how)),
  );
  void chrome.pipe.closed.then(() => {
    if (closing === undefined) lost.abort(new Error(lossReason(chrome)));
  });
  const view = components.find((component) => component.view)?.view;
  const putUpload = components.find((component) => component.putUpload)?.putUpload;
  const thumbnail = components.find((component) => component.thumbnail)?.thumbnail;
  return {
    relay,
    chrome,
    startedAt: now(),
    lost: lost.signal,
    view,
    putUpload,
    thumbnail,
    close(code, reason, keep) {
      relay.close(code, reason);
      closing ??= closeOnce({ keep, isLost: lost.signal.aborted }).catch(async (error: unknown) => {
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
      // headless-shell renames a broken one and exits; the next start creates another. The second
      // start fails again for any other reason.
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

/** All or none: if one does not open, the others are closed and Chrome is ended. */
async function openComponents(
  chrome: Chrome,
  context: Context | undefined,
  wanted: readonly OpenComponent[],
): Promise<SessionComponent[]> {
  const opened = await Promise.allSettled(wanted.map((open) => open(chrome)));
  const components = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return components;
  await Promise.all(components.map((component) => component.close?.()));
  await Promise.all(components.map((component) => component.closeLast?.()));
  await discard(chrome, context);
  throw failed.reason;
}

/** Kills Chrome: the profile is not kept, and a proper end would cost 40 to 100 ms. */
async function discard(chrome: Chrome | undefined, context: Context | undefined): Promise<void> {
  chrome?.kill();
  await chrome?.exited;
  await context?.[Symbol.asyncDispose]();
}

type Open = {
  chrome: Chrome;
  context: Context | undefined;
  components: readonly SessionComponent[];
};

async function close(
  { chrome, context, components }: Open,
  { keep, isLost }: { keep: boolean; isLost: boolean },
): Promise<void> {
  await Promise.all(components.map((component) => component.close?.()));
  if (keep && context?.persist) {
    if (isLost) context.notSaved(lossReason(chrome));
    else await context.save(chrome);
  }
  await Promise.all(components.map((component) => component.closeLast?.()));
}
