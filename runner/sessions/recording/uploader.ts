/**
 * Encodes buffered frames and uploads the segments to core: for all sessions of a runner one at a
 * time, projects in turn. A session does not wait for the encoder when it ends; core accepts its
 * segments for ten minutes more. A segment that cannot be made ends its page's recording there;
 * earlier segments remain.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { WriteBlobRequest } from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import type { AddRecordingRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { openFairQueue } from '../../../proto/sharing/fair-queue.ts';
import { openShares } from '../../../proto/sharing/shares.ts';
import { retryCall } from '../../common/core-calls.ts';
import type { Encoded, Encoder, TimedFrame } from './encoder.ts';
import {
  ALLOWANCE_BYTES,
  type Allowance,
  type FrameBuffer,
  openFrameBuffer,
} from './frame-buffer.ts';
import { jpegSize } from './page-recorder.ts';

const CHUNK_BYTES = 64 << 10;
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

export type SegmentJob = {
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
  /** Reports to core that a page is recorded, or that its recording is complete. Never rejects. */
  report(
    track: Track,
    state: Pick<AddRecordingRequest, 'startMs' | 'endMs' | 'complete'>,
  ): Promise<void>;
  /** Queues a segment for encoding and upload. The frame buffer is removed in any case. */
  send(job: SegmentJob): void;
  /** Settles when all queued segments are done. */
  idle(): Promise<void>;
};

export function openRecordings(options: {
  encoder: Encoder;
  runDir: string;
  log: Log;
  allowance?: Allowance;
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
    async report(track, state) {
      await addTo(track, { number: 0, ...state }, closed.signal).catch((error: unknown) => {
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
  const endMs = job.until - track.sessionAt;
  const end = { number: 0, startMs: track.startAt - track.sessionAt, endMs, complete: true };
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
  const { sessionAt, startAt } = track;
  const startMs = must(buffer.frames[0], 'a frame of the segment').at - sessionAt;
  if (number === 1) {
    const from = startAt - sessionAt;
    const blobId = await upload(track, start, signal);
    const state = { number: 0, blobId, startMs: from, endMs: from, complete: false };
    await addTo(track, state, signal);
  }
  track.bytes += segment.length;
  if (track.bytes > VIDEO_MAX_BYTES) throw new Error('a video of more than 1 GiB');
  const blobId = await upload(track, segment, signal);
  const state = { number, blobId, startMs, endMs: until - sessionAt, complete: isLast };
  await addTo(track, state, signal);
}

async function upload(
  { clients, call, leaseId }: Recipient,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string> {
  async function* parts(): AsyncGenerator<WriteBlobRequest> {
    yield { part: { $case: 'header', value: { kind: 'RECORDING', leaseId } } };
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      yield { part: { $case: 'chunk', value: bytes.subarray(at, at + CHUNK_BYTES) } };
    }
  }
  const options = { ...call, signal, timeoutMs: UPLOAD_TIMEOUT_MS };
  const { blobId } = await retryCall(() => clients.blobs.writeBlob(parts(), options));
  return blobId;
}

type SegmentState = Pick<AddRecordingRequest, 'number' | 'startMs' | 'endMs' | 'complete'> & {
  blobId?: string;
};

async function addTo(
  { clients, call, leaseId, pageId, url }: Track,
  state: SegmentState,
  signal: AbortSignal,
): Promise<void> {
  const request = { leaseId, pageId, url, ...state };
  await retryCall(() => clients.runners.addRecording(request, { ...call, signal }));
}
