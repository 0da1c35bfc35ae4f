/**
 * Plays a recording: its init segment, then segments around the playhead, by Media Source
 * Extensions. The same playlist serves ended and running sessions.
 */
import { codecOf, type Playlist, playlistOf, segmentAt } from '../../data/playlist.ts';
import { shareHeaders } from '../../data/share.ts';

/** Ours, in seconds: enough for a slow network, and a few MB of memory. */
const AHEAD = 30;
const KEPT_BEHIND = 60;

/** Feeds the video until `signal` aborts; throws when the recording cannot be played. */
export async function feed(video: HTMLVideoElement, url: string, signal: AbortSignal) {
  const playlist = playlistOf(new TextDecoder().decode(await bytesOf(url, signal)));
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
  await follow({ video, source, buffer, playlist, signal });
}

type Fed = {
  video: HTMLVideoElement;
  source: MediaSource;
  buffer: SourceBuffer;
  playlist: Playlist;
  signal: AbortSignal;
};

async function follow({ video, buffer, playlist: { segments }, signal }: Fed): Promise<void> {
  const added = new Set<number>();
  for (;;) {
    const now = video.currentTime;
    const next = nextOf(segmentAt(segments, now), added, segments.length);
    const segment = next === undefined ? undefined : segments[next];
    if (next === undefined || segment === undefined || segment.start > now + AHEAD) {
      await Promise.race([once(video, 'timeupdate', signal), once(video, 'seeking', signal)]);
      continue;
    }
    await append(buffer, await bytesOf(ownPath(segment.url), signal), signal);
    added.add(next);
    await forget(buffer, now, signal);
    for (const index of added) {
      const old = segments[index];
      if (old !== undefined && old.start < now - KEPT_BEHIND) added.delete(index);
    }
  }
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
