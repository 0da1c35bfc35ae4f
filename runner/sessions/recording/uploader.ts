/**
 * Encodes the buffered frames of recordings into video segments, uploads them to core, or to its
 * bucket, and reports them with logs and renewals (runner/leases). One encoder serves all sessions
 * of a runner, one segment at a time, and projects take turns. Encoded segments wait for their
 * upload in files, those of a page in their order, until core has answered the report; when a
 * project has too many, the encoder leaves its frames in their buffers. A session ends without
 * waiting for it: core accepts segments for ten minutes after the end. When a segment cannot be
 * encoded, the recording of that page ends with the segment before.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { PageRecording, PageRecording_Part } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { openFairQueue } from '../../../proto/sharing/fair-queue.ts';
import { openShares, type Shares } from '../../../proto/sharing/shares.ts';
import { until as untilAborted } from '../../common/abort.ts';
import { CHUNK_BYTES, uploadBlob } from '../../common/blob-upload.ts';
import { watchOverload, yieldWhile } from '../../common/cpu-room.ts';
import type { Lease } from '../../leases/lease.ts';
import type { Encoded, Encoder, TimedFrame } from './encoder.ts';
import { ALLOWANCE_BYTES, type FrameBuffer, openFrameBuffer } from './frame-buffer.ts';
import { jpegSize } from './page-recorder.ts';

/** In bytes, of a page's video. Ours: twenty minutes of full-page motion, or days of reading. */
const VIDEO_MAX_BYTES = 1 << 30;
/**
 * Of one blob, and of one report. Ours: a bucket or core may be away; core accepts segments for ten
 * minutes after an end.
 */
const SEND_TIMEOUT_MS = 540_000;
/**
 * Encoded segments that wait for their upload, on disk: about a megabyte each. One project has half
 * of them. Ours.
 */
const WAITING = { max: 512, ofOwner: 256 };
/** Ours: for the last segments when the runner shuts down. */
const SHUTDOWN_GRACE_MS = 5_000;
/** Ours: how late the encoder may become because sessions need the processors. */
const YIELD_MS = 10_000;

/** Where to upload, and under which lease, which may have ended. */
export type Recipient = {
  clients: Pick<Clients, 'blobs'>;
  lease: Pick<Lease, 'id' | 'call' | 'append' | 'waitOf'>;
  sessionId: string;
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
  /** Settles when its encoded segments are uploaded. Never rejects. */
  sending?: Promise<void>;
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
  /** Reports to core that a page is recorded, at once when `hurry` aborts. Never rejects. */
  report(track: Track, hurry: AbortSignal): Promise<void>;
  /** Queues a segment for encoding and upload. The frame buffer is removed in any case. */
  send(job: SegmentJob): void;
  /** From now on segments do not yield to sessions: the runner takes no new ones. */
  retire(): void;
  /** Settles when all queued segments are done. */
  idle(): Promise<void>;
  /** As `idle`; when the signal aborts, segments have a few seconds left, and none may follow. */
  finish(ending: AbortSignal): Promise<void>;
};

export function openRecordings(options: {
  encoder: Encoder;
  runDir: string;
  log: Log;
  allowance?: Shares;
  /** By default what the kernel says. */
  isOverloaded?: () => boolean;
}): Recordings {
  const { encoder, runDir, log, allowance = openShares(ALLOWANCE_BYTES) } = options;
  const { isOverloaded = watchOverload() } = options;
  const untilRoom = yieldWhile(isOverloaded, YIELD_MS);
  const retired = new AbortController();
  const [hurry, closed] = [new AbortController(), new AbortController()];
  const waiting = openFairQueue<SegmentJob>();
  const places = openShares(WAITING.max, WAITING.ofOwner);
  let making = Promise.resolve();
  let isMaking = false;

  const sending = new Set<Promise<void>>();
  const release = (projectId: string): void => {
    places.release(projectId, 1);
    start();
  };
  const signals = { hurry: hurry.signal, signal: closed.signal };
  const deps: Deps = { encoder, log, ...signals, runDir, release, sending };
  /** Of a project that has a place for the encoded segment. */
  const next = () => waiting.shift((projectId) => places.acquire(projectId, 1));

  async function makeAll(): Promise<void> {
    isMaking = true;
    for (let one = next(); one; one = next()) {
      await untilRoom(retired.signal);
      await make(one.item, deps);
    }
    isMaking = false;
  }
  function start(): void {
    if (!isMaking) making = makeAll();
  }
  const idle = async (): Promise<void> => {
    while (isMaking || sending.size > 0) await Promise.all([making, ...sending]);
  };
  const finish = async (ending: AbortSignal): Promise<void> => {
    retired.abort();
    await untilAborted(idle(), ending).catch(() => undefined);
    hurry.abort();
    await Promise.race([idle(), sleep(SHUTDOWN_GRACE_MS, undefined, { ref: false })]);
    closed.abort();
  };

  return {
    openFrameBuffer: (name, projectId) =>
      openFrameBuffer(join(runDir, `recording-${name}`), projectId, allowance),
    async report(track, sooner) {
      const start = { parts: [], until: track.startAt, isComplete: false };
      const when = { ...signals, hurry: AbortSignal.any([hurry.signal, sooner]) };
      await report(track, start, when).catch((error: unknown) => {
        if (stopAtQuota(track, error)) return;
        log.warn({ error: String(error) }, 'reporting a recording to core failed');
      });
    },
    send(job) {
      waiting.push(job.track.projectId, job);
      start();
    },
    retire: () => retired.abort(),
    idle,
    finish,
    async [Symbol.asyncDispose]() {
      await finish(AbortSignal.abort());
      await encoder[Symbol.asyncDispose]();
      await idle();
    },
  };
}

type When = {
  /** Aborts when reports must not wait for others. */
  hurry: AbortSignal;
  /** Aborts when nothing may be sent any more. */
  signal: AbortSignal;
};

type Deps = When & {
  encoder: Encoder;
  log: Log;
  runDir: string;
  /** Of the place of one encoded segment. */
  release: (projectId: string) => void;
  sending: Set<Promise<void>>;
};

/** Encodes the segment, and leaves its upload to the queue of its page. Never rejects. */
async function make(job: SegmentJob, deps: Deps): Promise<void> {
  const { track } = job;
  let segment: Waiting | undefined;
  try {
    if (track.isBroken) await job.buffer.remove();
    else segment = await stored(job, deps);
  } catch (error) {
    broke(job, error, deps);
  }
  const uploaded = (track.sending ?? Promise.resolve()).then(() => upload(job, segment, deps));
  track.sending = uploaded;
  deps.sending.add(uploaded);
  void uploaded.then(() => deps.sending.delete(uploaded));
}

/** An encoded segment in a file. */
type Waiting = AsyncDisposable & { bytes: number; read(): Promise<Buffer> };

/** The frame buffer is removed in any case. */
async function stored(job: SegmentJob, deps: Deps): Promise<Waiting> {
  try {
    const { segment } = await encoded(job, deps);
    const path = join(deps.runDir, `segment-${randomUUID()}`);
    await writeFile(path, segment, { flag: 'wx', mode: 0o600 });
    return {
      bytes: segment.length,
      read: () => readFile(path),
      [Symbol.asyncDispose]: () => rm(path, { force: true }),
    };
  } finally {
    await job.buffer.remove();
  }
}

/** Uploads the segment, unless one before it is missing. Never rejects. */
async function upload(job: SegmentJob, segment: Waiting | undefined, deps: Deps): Promise<void> {
  const { track, isLast } = job;
  try {
    await using waiting = segment;
    if (!track.isBroken && waiting) await deliver(job, waiting, deps);
  } catch (error) {
    broke(job, error, deps);
  }
  deps.release(track.projectId);
  if (!track.isBroken || !isLast) return;
  const end = { parts: [], until: job.until, isComplete: true };
  // Without this report, core completes the recording ten minutes after its session.
  await report(track, end, deps).catch(() => undefined);
}

/** No segment may follow a missing one. */
function broke({ track }: SegmentJob, error: unknown, { log }: Deps): void {
  log.warn({ page: track.pageId, error: String(error) }, 'a recording is incomplete');
  stopAtQuota(track, error);
  track.isBroken = true;
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

async function deliver(job: SegmentJob, segment: Waiting, when: When): Promise<void> {
  const { track, number, buffer, until, isLast } = job;
  const { at: from } = must(buffer.frames[0], 'a frame of the segment');
  const { sessionAt, startAt } = track;
  const parts: PageRecording_Part[] = [];
  if (number === 1) {
    const receipt = await send(track, must(track.start, 'the start of a video'), when);
    const atMs = startAt - sessionAt;
    parts.push({ number: 0, receipt, startMs: atMs, endMs: atMs });
  }
  track.bytes += segment.bytes;
  if (track.bytes > VIDEO_MAX_BYTES) throw new Error('a video of more than 1 GiB');
  const receipt = await send(track, await segment.read(), when);
  parts.push({ number, receipt, startMs: from - sessionAt, endMs: until - sessionAt });
  await report(track, { parts, until, isComplete: isLast }, when);
}

/** Returns the receipt of the stored bytes. */
async function send(
  { clients, lease, projectId }: Track,
  bytes: Buffer,
  { signal }: When,
): Promise<string> {
  async function* content(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      yield bytes.subarray(at, at + CHUNK_BYTES);
    }
  }
  const options = { ...lease.call, signal, timeoutMs: SEND_TIMEOUT_MS, owner: projectId };
  const part = { kind: 'RECORDING', leaseId: lease.id, reported: true, content } as const;
  const { receipt } = await uploadBlob(clients, part, options);
  if (receipt === undefined) throw new Error('core is older than this runner: upgrade core first');
  return receipt;
}

/** `until`: end of what is recorded, in ms since 1970. */
type News = Pick<PageRecording, 'parts'> & { until: number; isComplete: boolean };

/** With the next report of the runner, unless it must hurry. */
async function report(
  { lease, sessionId, pageId, url, sessionAt, startAt }: Track,
  { parts, until, isComplete: complete }: News,
  { hurry, signal }: When,
): Promise<void> {
  const times = { startMs: startAt - sessionAt, endMs: until - sessionAt };
  const recording = { leaseId: lease.id, pageId, url, parts, complete, ...times };
  const within = AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
  const patience = { ms: lease.waitOf(sessionId), hurry };
  const how = { isUrgent: false, signal: within, patience };
  await lease.append({ kind: 'recording', recording }, how);
}
