/**
 * Plays a recording: its init segment, then segments around the playhead, by Media Source
 * Extensions. The same playlist serves ended and running sessions.
 */
import { codecOf, type Playlist, playlistOf, segmentAt } from '../../../data/playlist.ts';
import { shareHeaders } from '../../../data/share.ts';

/** Ours, in seconds: enough for a slow network, and a few MB of memory. */
const AHEAD = 30;
const KEPT_BEHIND = 60;

/** In ms. Ours: a segment of a running session is ready each 30 s. */
const AGAIN_MS = 10_000;

/** Feeds the video until `signal` aborts; throws when the recording cannot be played. */
export async function feed(video: HTMLVideoElement, url: string, signal: AbortSignal) {
  const playlist = await readPlaylist(url, signal);
  if (playlist.segments.length === 0) throw new Error('nothing of this page was recorded');
  const init = await bytesOf(ownPath(playlist.initUrl), signal);
  const type = `video/mp4; codecs="${codecOf(init) ?? 'avc1.42E01F'}"`;
  if (!MediaSource.isTypeSupported(type)) throw new Error('this browser has no decoder for H.264');
  const source = new MediaSource();
  const blob = URL.createObjectURL(source);
  signal.addEventListener('abort', () => URL.revokeObjectURL(blob), { once: true });
  video.src = blob;
  await once(source, 'sourceopen', signal);
  const buffer = source.addSourceBuffer(type);
  source.duration = playlist.segments.at(-1)?.end ?? 0;
  await append(buffer, init, signal);
  await follow({ video, source, buffer, url, signal }, playlist);
}

type Fed = {
  video: HTMLVideoElement;
  source: MediaSource;
  buffer: SourceBuffer;
  url: string;
  signal: AbortSignal;
};

async function follow(fed: Fed, begun: Playlist): Promise<void> {
  const { video, source, buffer, url, signal } = fed;
  let playlist = begun;
  let readAt = performance.now();
  const added = new Set<number>();
  for (;;) {
    const { segments, isEnded } = playlist;
    const now = video.currentTime;
    const next = nextOf(segmentAt(segments, now), added, segments.length);
    const segment = next === undefined ? undefined : segments[next];
    if (next === undefined || segment === undefined || segment.start > now + AHEAD) {
      const isOld = !isEnded && performance.now() - readAt > AGAIN_MS;
      if (isOld) {
        // a service that is away for a moment does not end what is shown
        const before = playlist;
        playlist = await readPlaylist(url, signal).catch(() => before);
        readAt = performance.now();
        source.duration = Math.max(source.duration, playlist.segments.at(-1)?.end ?? 0);
      } else await moved(video, signal);
      continue;
    }
    await append(buffer, await bytesOf(ownPath(segment.url), signal), signal);
    added.add(next);
    await forget(buffer, now, signal);
    for (const index of added) {
      const old = segments[index];
      if (old !== undefined && old.start < now - KEPT_BEHIND) added.delete(index);
    }
    // the end is shown as one; a later append opens the source again
    const isLast = isEnded && next === segments.length - 1;
    if (isLast && source.readyState === 'open') source.endOfStream();
  }
}

/** Resolves when the playhead moves, and after some seconds, since a recording may grow. */
async function moved(video: HTMLVideoElement, signal: AbortSignal): Promise<void> {
  const own = new AbortController();
  const either = AbortSignal.any([signal, own.signal]);
  const timer = setTimeout(() => own.abort(), AGAIN_MS);
  try {
    await Promise.race([once(video, 'timeupdate', either), once(video, 'seeking', either)]);
  } catch (error) {
    if (signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    own.abort();
  }
}

async function readPlaylist(url: string, signal: AbortSignal): Promise<Playlist> {
  return playlistOf(new TextDecoder().decode(await bytesOf(url, signal)));
}

/** The first segment from the playhead on that is not there. */
function nextOf(from: number, added: ReadonlySet<number>, count: number): number | undefined {
  for (let index = from; index < count; index += 1) if (!added.has(index)) return index;
  return undefined;
}

async function forget(buffer: SourceBuffer, now: number, signal: AbortSignal): Promise<void> {
  const { buffered } = buffer;
  const end = now - KEPT_BEHIND;
  if (buffered.length === 0 || buffered.start(0) >= end) return;
  buffer.remove(0, end);
  await once(buffer, 'updateend', signal);
}

async function append(buffer: SourceBuffer, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal) {
  buffer.appendBuffer(bytes);
  await once(buffer, 'updateend', signal);
}

async function bytesOf(url: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await fetch(url, { signal, headers: shareHeaders() });
  if (!answer.ok) throw new Error(`the recording was answered with ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Links have the public URL of the service, which may differ from the origin of this page. */
function ownPath(url: string): string {
  const { pathname, search } = new URL(url, location.href);
  return pathname + search;
}

function once(target: EventTarget, type: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    target.addEventListener(type, () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
