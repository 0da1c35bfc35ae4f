/** Recorded pages, their playlists, and the codec of an init segment. Pure. */
import type { ReplayPage } from './types.ts';

/** Times in seconds since the page's recording began. */
export type Segment = { url: string; start: number; end: number };
export type Playlist = { initUrl: string; segments: Segment[]; isEnded: boolean };

/** Reads an HLS playlist of fragmented MP4. */
export function playlistOf(text: string): Playlist {
  const segments: Segment[] = [];
  let initUrl = '';
  let start = 0;
  let duration = 0;
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line.startsWith('#EXT-X-MAP:')) initUrl = /URI="([^"]+)"/.exec(line)?.[1] ?? '';
    else if (line.startsWith('#EXTINF:')) duration = Number.parseFloat(line.slice(8)) || 0;
    else if (line !== '' && !line.startsWith('#')) {
      segments.push({ url: line, start, end: start + duration });
      start += duration;
    }
  }
  return { initUrl, segments, isEnded: text.includes('#EXT-X-ENDLIST') };
}

/** The segment that contains the time; the last one after the end; -1 without segments. */
export function segmentAt(segments: readonly Segment[], seconds: number): number {
  const index = segments.findIndex(({ end }) => seconds < end);
  return index < 0 ? segments.length - 1 : index;
}

/** `avc1.42E01F` from the box avcC of an init segment; undefined when it has none. */
export function codecOf(init: Uint8Array): string | undefined {
  for (let at = 0; at + 8 <= init.length; at += 1) {
    const isBox = String.fromCharCode(...init.subarray(at, at + 4)) === 'avcC';
    if (isBox) return `avc1.${hex(init[at + 5])}${hex(init[at + 6])}${hex(init[at + 7])}`;
  }
  return undefined;
}

/** `at` in ms since the session's start. */
type Place = { at: number; page: number | undefined; pageId: string | undefined };

/** The page that shows the time: the wanted one, else the current one, else the newest one. */
export function pageAt(
  pages: readonly ReplayPage[],
  { at, page, pageId }: Place,
): string | undefined {
  const wantedPage = pages.find((one) => one.pageId === String(page));
  if (wantedPage !== undefined) return wantedPage.pageId;
  const covering = pages.filter(
    ({ startTimeMs, endTimeMs }) => at >= startTimeMs && at <= endTimeMs,
  );
  const isCurrent = covering.length === 0 || covering.some((one) => one.pageId === pageId);
  return isCurrent ? pageId : covering.at(-1)?.pageId;
}

function hex(byte: number | undefined): string {
  return (byte ?? 0).toString(16).padStart(2, '0').toUpperCase();
}
