/**
 * Encodes the buffered frames of recordings into video segments and uploads them to core. One
 * encoder serves all sessions of a runner, one segment at a time, and projects take turns. A
 * session ends without waiting for it: core accepts segments for ten minutes after the end. When a
 * segment cannot be encoded, the recording of that page ends with the segment before.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { openFairQueue } from '../../../proto/sharing/fair-queue.ts';
import { openShares, type Shares } from '../../../proto/sharing/shares.ts';
import { CHUNK_BYTES, uploadBlob } from '../../common/blob-upload.ts';
import { retryCall } from '../../common/core-calls.ts';
import type { Encoded, Encoder, TimedFrame } from './encoder.ts';
import { ALLOWANCE_BYTES, type FrameBuffer, openFrameBuffer } from './frame-buffer.ts';
import { jpegSize } from './page-recorder.ts';

/** In bytes, of a page's video. Ours: twenty minutes of full-page motion, or days of reading. */
const VIDEO_MAX_BYTES = 1 << 30;
/** Of one blob. Ours: a segment has about a megabyte. */
const UPLOAD_TIMEOUT_MS = 60_000;
/** Ours: for the last segments when the runner shuts down. */
const SHUTDOWN_GRACE_MS = 5_000;

/** Where to upload, and under which lease. */
export type Recipient = {
  clients: Pick<Clients, 'blobs' | 'runners'>;
  call: CallOptions;
  leaseId: string;
};

/** The recording of one page. */
export type Track = Recipient & {
  /** For fair queueing at the encoder, and for the share of the frame buffers. */
  projectId: string;
  pageId: number;
  /** The page's last address. */
  url: string;
  /** Start of its session and of its video, in ms since 1970. */
  sessionAt: number;
  startAt: number;
  /** From the first segment, for the whole video. */
  size?: { width: number; height: number };
  start?: Buffer;
  /** Total size of its segments so far. */
  bytes: number;
  /** A segment is missing, or the limit is reached: no segment may follow. */
  isBroken: boolean;
  /** For the session's log. */
  warn: (message: string) => void;
};

type SegmentJob = {
  track: Track;
  /** From 1. */
  number: number;
  buffer: FrameBuffer;
  /** End of its last frame, in ms since 1970. */
  until: number;
  isLast: boolean;
};

export type Recordings = AsyncDisposable & {
  openFrameBuffer(name: string, projectId: string): FrameBuffer;
  /** Reports to core that a page is recorded. Never rejects. */
  report(track: Track): Promise<void>;
  /** Queues a segment for encoding and upload. The frame buffer is removed in any case. */
  send(job: SegmentJob): void;
  /** Settles when all queued segments are done. */
  idle(): Promise<void>;
};

export function openRecordings(options: {
  encoder: Encoder;
  runDir: string;
  log: Log;
  allowance?: Shares;
}): Recordings {
  const { encoder, runDir, log, allowance = openShares(ALLOWANCE_BYTES) } = options;
  const closed = new AbortController();
  const waiting = openFairQueue<SegmentJob>();
  let making: Promise<void> | undefined;

  async function makeAll(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await make(next.item, { encoder, log, signal: closed.signal });
    }
    making = undefined;
  }
  const idle = async (): Promise<void> => making;

  return {
    openFrameBuffer: (name, projectId) =>
      openFrameBuffer(join(runDir, `recording-${name}`), projectId, allowance),
    async report(track) {
      const { startAt: from } = track;
      const state = { number: 0, from, until: from, isComplete: false };
      await addTo(track, state, closed.signal).catch((error: unknown) => {
        if (stopAtQuota(track, error)) return;
        log.warn({ error: String(error) }, 'reporting a recording to core failed');
      });
    },
    send(job) {
      waiting.push(job.track.projectId, job);
      making ??= makeAll();
    },
    idle,
    async [Symbol.asyncDispose]() {
      await Promise.race([idle(), sleep(SHUTDOWN_GRACE_MS, undefined, { ref: false })]);
      closed.abort();
      await encoder[Symbol.asyncDispose]();
      await idle();
    },
  };
}

type Deps = { encoder: Encoder; log: Log; signal: AbortSignal };

async function make(job: SegmentJob, deps: Deps): Promise<void> {
  const { track, buffer, isLast } = job;
  try {
    if (!track.isBroken) await deliver(job, await encoded(job, deps), deps.signal);
  } catch (error) {
    deps.log.warn({ page: track.pageId, error: String(error) }, 'a recording is incomplete');
    stopAtQuota(track, error);
    track.isBroken = true;
  } finally {
    await buffer.remove();
  }
  if (!track.isBroken || !isLast) return;
  const end = { number: 0, from: track.startAt, until: job.until, isComplete: true };
  // Without this report, core completes the recording ten minutes after its session.
  await addTo(track, end, deps.signal).catch(() => undefined);
}

/** Ends the page's recording with a warning when the project has no storage left. */
function stopAtQuota(track: Track, error: unknown): boolean {
  if (!(error instanceof Fault) || error.reason !== 'QUOTA_EXCEEDED') return false;
  track.isBroken = true;
  track.warn(`recording has stopped: ${error.message}`);
  return true;
}

/** Retries once when the encoder's Chrome was lost, which another recording may have caused. */
async function encoded(job: SegmentJob, { encoder, signal }: Deps): Promise<Encoded> {
  signal.throwIfAborted();
  const { track, buffer } = job;
  const [first] = buffer.frames;
  track.size ??= evenSize(await buffer.read(must(first, 'a frame of the segment')));
  const { size } = track;
  const encode = () => encoder.encode({ ...size, frames: framesOf(job) });
  const made = await encode().catch(encode);
  track.start ??= made.start;
  // one size, one encoder: a player uses the start of the first segment for all
  if (!track.start.equals(made.start)) throw new Error('a segment with another start');
  return made;
}

async function* framesOf({ track, buffer, until }: SegmentJob): AsyncGenerator<TimedFrame> {
  for (const [index, frame] of buffer.frames.entries()) {
    const next = buffer.frames[index + 1]?.at ?? until;
    const jpeg = await buffer.read(frame);
    yield { at: frame.at - track.startAt, lasts: Math.max(next - frame.at, 1), jpeg };
  }
}

/** H.264 has no odd sizes. */
function evenSize(jpeg: Buffer): { width: number; height: number } {
  const { width, height } = must(jpegSize(jpeg), 'the size of a frame');
  return { width: Math.max(width & ~1, 2), height: Math.max(height & ~1, 2) };
}

async function deliver(
  job: SegmentJob,
  { start, segment }: Encoded,
  signal: AbortSignal,
): Promise<void> {
  const { track, number, buffer, until, isLast } = job;
  const { at: from } = must(buffer.frames[0], 'a frame of the segment');
  if (number === 1) {
    const blobId = await upload(track, start, signal);
    const { startAt } = track;
    const state = { number: 0, blobId, from: startAt, until: startAt, isComplete: false };
    await addTo(track, state, signal);
  }
  track.bytes += segment.length;
  if (track.bytes > VIDEO_MAX_BYTES) throw new Error('a video of more than 1 GiB');
  const blobId = await upload(track, segment, signal);
  await addTo(track, { number, blobId, from, until, isComplete: isLast }, signal);
}

function upload(
  { clients, call, leaseId }: Recipient,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string> {
  function* content(): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      yield bytes.subarray(at, at + CHUNK_BYTES);
    }
  }
  const options = { ...call, signal, timeoutMs: UPLOAD_TIMEOUT_MS };
  return uploadBlob(clients, { kind: 'RECORDING', leaseId, content }, options);
}

type TrackState = {
  /** 0: the start of the video. */
  number: number;
  blobId?: string;
  /** In ms since 1970. */
  from: number;
  until: number;
  isComplete: boolean;
};

async function addTo(
  { clients, call, leaseId, pageId, url, sessionAt }: Track,
  { number, blobId, from, until, isComplete: complete }: TrackState,
  signal: AbortSignal,
): Promise<void> {
  const times = { startMs: from - sessionAt, endMs: until - sessionAt };
  const request = { leaseId, pageId, url, number, blobId, complete, ...times };
  await retryCall(() => clients.runners.addRecording(request, { ...call, signal }));
}
