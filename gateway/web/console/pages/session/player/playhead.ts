/** The player follows the session's clock, and tells it what is shown. */
import { useEffect, useRef } from 'preact/hooks';
import type { Range } from '../../../data/log/fold.ts';
import { seek, shown, skipsIdle, wanted } from '../../../data/playhead.ts';
import { pageAt } from '../../../data/playlist.ts';
import { setQuery } from '../../../data/router.ts';
import type { ReplayPage, Session } from '../../../data/types.ts';
import { startOf } from '../clock.ts';
import type { Video } from './video.ts';

/** In ms. Ours: what is left of a stretch is shorter than a seek. */
const SKIP_MIN = 300;

type Parts = {
  video: Video;
  session: Session;
  pages: readonly ReplayPage[];
  page: ReplayPage | undefined;
  idle: readonly Range[];
};

export function usePlayhead({ video, session, pages, page, idle }: Parts): void {
  const begun = startOf(session);
  const start = begun + (page?.startTimeMs ?? 0);
  const end = begun + (page?.endTimeMs ?? 0);
  const target = wanted.value;
  const gaps = useRef(idle);
  gaps.current = idle;
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    return tellOf(element, start, (at) => skip(gaps.current, { at, end }));
  }, [video, start, end]);
  const pageId = page?.pageId;
  const other = target && pageAt(pages, { at: target.at - begun, page: target.page, pageId });
  useEffect(() => {
    const element = video.current;
    if (element === null || target === undefined) return;
    if (other !== pageId) {
      setQuery({ page: other });
      return;
    }
    const go = () => {
      element.currentTime = Math.max(0, (target.at - start) / 1_000);
    };
    go();
    // another page has another source, which may not be there yet
    element.addEventListener('loadedmetadata', go);
    return () => element.removeEventListener('loadedmetadata', go);
  }, [video, target, start, other, pageId]);
}

/** Reports each frame while the video plays, and each other change of its time. */
function tellOf(element: HTMLVideoElement, start: number, played: (at: number) => void) {
  let frame = 0;
  const tell = () => {
    // without a source its time is no time of the page
    if (element.readyState > 0) shown.value = start + element.currentTime * 1_000;
  };
  const follow = () => {
    cancelAnimationFrame(frame);
    tell();
    if (element.paused) return;
    played(start + element.currentTime * 1_000);
    frame = requestAnimationFrame(follow);
  };
  const types = ['timeupdate', 'seeking', 'play', 'pause'];
  for (const type of types) element.addEventListener(type, follow);
  return () => {
    cancelAnimationFrame(frame);
    for (const type of types) element.removeEventListener(type, follow);
    shown.value = undefined;
  };
}

/** Leaves an idle stretch, at the end of the recording at last. */
function skip(idle: readonly Range[], { at, end }: { at: number; end: number }): void {
  if (!skipsIdle.peek()) return;
  const stretch = idle.find(({ from, to }) => at >= from && at < to);
  const next = Math.min(end, stretch?.to ?? at);
  if (next - at > SKIP_MIN) seek(next);
}
