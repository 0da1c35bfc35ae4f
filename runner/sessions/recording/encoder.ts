/**
 * One Chrome that encodes all recordings of a runner: JPEG frames in, segments of fragmented MP4
 * out, by WebCodecs and mediabunny in a page of its own (encoder-page.js). Started on demand, ended
 * when idle; one segment at a time, in order. It has no network and a lower priority than the
 * Chromes of sessions. Frames are untrusted: an exploit of the decoder stays in a jail that holds
 * nothing.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Log } from '../../../proto/common/log.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { openVisits } from '../../browser/cdp/empty-documents.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import type { TargetSession } from '../../browser/cdp/target-session.ts';
import type { Chrome } from '../../browser/launch.ts';
import { type Egress, openEgress } from '../../jail/egress/egress-proxy.ts';

/** Level 4.0 allows 1280 by 1280. Baseline: supported by every H.264 player. */
const CODEC = 'avc1.420028';
/** In bits a second, and less while nothing moves. Ours: a usual page takes 38 KB a second. */
const BITRATE = 600_000;
/** Ours: a start takes 0.2 s; consecutive sessions should share one. */
const IDLE_MS = 20_000;
/**
 * Ours: a batch takes 0.2 s on an idle machine, and the encoder has a low priority on a busy one.
 */
const BATCH_OPTIONS = { timeoutMs: 60_000 };
/** Ours: it takes 0.1 s, and closing the encoder waits for it. */
const START_OPTIONS = { timeoutMs: 10_000 };
/** In bytes of JPEG. Ours: the size of one message. */
const BATCH_BYTES = 2 << 20;
/** WebCodecs needs a secure context. No network is used. */
const PAGE_URL = 'https://encoder.invalid/';

/** Times in ms from the start of the page's video. */
export type TimedFrame = { at: number; lasts: number; jpeg: Buffer };

export type Segment = {
  /** Of the whole video, even. */
  width: number;
  height: number;
  frames: AsyncIterable<TimedFrame> | Iterable<TimedFrame>;
};

export type Encoded = {
  /** ftyp and moov: the same for every segment of that size. */
  start: Buffer;
  /** moof and mdat. */
  segment: Buffer;
};

export type Encoder = AsyncDisposable & {
  /**
   * Queued behind earlier calls. Rejects when encoding fails, or when the encoder is disposed of.
   */
  encode(segment: Segment): Promise<Encoded>;
};

type Options = {
  /** Like a session's Chrome, in the background and with that egress. */
  launch(wanted: { egress: Egress; isBackground: true }): Promise<Chrome>;
  log: Log;
  idleMs?: number;
};

type Running = { chrome: Chrome; session: TargetSession };

export function openEncoder(options: Options): Encoder {
  const { idleMs = IDLE_MS } = options;
  let running: Promise<Running> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let idle: NodeJS.Timeout | undefined;
  /** Settles when all Chromes stopped so far are gone. */
  let stopped = Promise.resolve();
  let isClosed = false;

  const stop = async (): Promise<void> => {
    const ending = running?.then(({ chrome }) => end(chrome));
    running = undefined;
    const before = stopped;
    // the caller of `encode` got the error
    stopped = Promise.allSettled([before, ending]).then(() => undefined);
    await stopped;
  };
  const encode = async (segment: Segment): Promise<Encoded> => {
    if (isClosed) throw new Error('the encoder is closed');
    clearTimeout(idle);
    try {
      running ??= start(options);
      return await encodeIn((await running).session, segment);
    } catch (error) {
      await stop(); // its state is unknown
      throw error;
    } finally {
      idle = setTimeout(() => void stop(), idleMs).unref();
    }
  };
  return {
    encode(segment) {
      const done = last.then(() => encode(segment));
      last = done.catch(() => undefined);
      return done;
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(idle);
      await stop();
      await last;
    },
  };
}

async function start({ launch, log }: Options): Promise<Running> {
  const chrome = await launch({ egress: noEgress(log), isBackground: true });
  try {
    return { chrome, session: await openEncoderPage(chrome) };
  } catch (error) {
    await end(chrome);
    throw error;
  }
}

async function end(chrome: Chrome): Promise<void> {
  chrome.kill();
  await chrome.exited;
}

/** A jail without network: every connection is destroyed. */
function noEgress(log: Log): Egress {
  return { ...openEgress({ allow: cidrList([]), log }), handle: (socket) => void socket.destroy() };
}

async function openEncoderPage(chrome: Chrome): Promise<TargetSession> {
  const pages = await openPages(chrome);
  const session = pages.active?.session;
  if (session === undefined) throw new Error('the encoder has no page');
  const visits = await openVisits(session, START_OPTIONS);
  await visits.to(PAGE_URL);
  const mediabunny = createRequire(import.meta.url).resolve('mediabunny');
  const sources = [
    // mediabunny's browser build, next to the one for Node
    await readFile(mediabunny.replace(/[^/]+$/, 'mediabunny.min.cjs'), 'utf8'),
    await readFile(new URL('./encoder-page.js', import.meta.url), 'utf8'),
  ];
  for (const source of sources) await run(session, `${source}\n;0`);
  return session;
}

async function encodeIn(session: TargetSession, segment: Segment): Promise<Encoded> {
  const { width, height, frames } = segment;
  await callPage(session, 'begin', { width, height, codec: CODEC, bitrate: BITRATE });
  let batch: TimedFrame[] = [];
  let bytes = 0;
  for await (const frame of frames) {
    batch.push(frame);
    bytes += frame.jpeg.length;
    if (bytes < BATCH_BYTES) continue;
    await add(session, batch);
    [batch, bytes] = [[], 0];
  }
  if (batch.length > 0) await add(session, batch);
  const made = (await callPage(session, 'finish')) as { start: string; segment: string };
  return {
    start: Buffer.from(made.start, 'base64'),
    segment: Buffer.from(made.segment, 'base64'),
  };
}

async function add(session: TargetSession, frames: readonly TimedFrame[]): Promise<void> {
  const words = frames.map(({ at, lasts, jpeg }) => ({
    at: Math.round(at * 1000),
    lasts: Math.round(lasts * 1000),
    jpeg: jpeg.toString('base64'),
  }));
  await callPage(session, 'add', words);
}

/** Calls a function of encoder-page.js. */
function callPage(session: TargetSession, name: string, argument?: unknown): Promise<unknown> {
  return run(session, `tabernEncoder.${name}(${JSON.stringify(argument ?? null)})`);
}

async function run(session: TargetSession, expression: string): Promise<unknown> {
  const wanted = { expression, awaitPromise: true, returnByValue: true };
  const { result, exceptionDetails } = (await session.call(
    'Runtime.evaluate',
    wanted,
    BATCH_OPTIONS,
  )) as {
    result: { value?: unknown };
    exceptionDetails?: { exception?: { description?: string } };
  };
  if (exceptionDetails === undefined) return result.value;
  throw new Error(`the encoder failed: ${exceptionDetails.exception?.description ?? 'no reason'}`);
}
