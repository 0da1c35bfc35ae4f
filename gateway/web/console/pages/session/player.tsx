/** The recording of a session: one page of it at a time. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { inProject, sentenceOf } from '../../data/api.ts';
import { lengthText } from '../../data/format.ts';
import { shown, wanted } from '../../data/playhead.ts';
import { route, setQuery } from '../../data/router.ts';
import { partOf } from '../../data/share.ts';
import type { ReplayPage, Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Foreign } from '../../parts/text.tsx';
import { feed } from './feed.ts';

const SPEEDS = [0.5, 1, 2, 4, 8];
const STEP = 5;

type Video = { current: HTMLVideoElement | null };
type Props = { session: Session; pages: readonly ReplayPage[] };

export function Player({ session, pages }: Props) {
  const chosen = route.value.query.get('page');
  const page = pages.find(({ pageId }) => pageId === chosen) ?? pages[0];
  const startedAt = Date.parse(session.startedAt ?? session.createdAt);
  const video = useRef<HTMLVideoElement>(null);
  const [error, setError] = useState<string>();
  const url = inProject(partOf(session.id, `replays/${page?.pageId ?? '0'}`));
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    const own = new AbortController();
    setError(undefined);
    feed(element, url, own.signal).catch((reason: unknown) => {
      if (!own.signal.aborted) setError(sentenceOf(reason));
    });
    return () => own.abort();
  }, [url]);
  useClock(video, page, startedAt);
  usePlayerKeys(video);
  return (
    <section class="picture recorded" aria-label="Picture">
      <PageChoice pages={pages} chosen={page?.pageId} />
      {error !== undefined && <p class="error">{error}</p>}
      <video ref={video} controls muted playsInline hidden={error !== undefined} />
      <Speeds video={video} />
    </section>
  );
}

/** Shows what the session's clock wants, and tells it what is shown. */
function useClock(video: Video, page: ReplayPage | undefined, startedAt: number): void {
  const start = startedAt + (page?.startTimeMs ?? 0);
  const target = wanted.value;
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    const tell = () => {
      shown.value = start + element.currentTime * 1_000;
    };
    element.addEventListener('timeupdate', tell);
    return () => {
      element.removeEventListener('timeupdate', tell);
      shown.value = undefined;
    };
  }, [video, start]);
  useEffect(() => {
    if (target === undefined) return;
    const isOther = target.page !== undefined && String(target.page) !== page?.pageId;
    if (isOther) setQuery({ page: String(target.page) });
    else if (video.current) video.current.currentTime = Math.max(0, (target.at - start) / 1_000);
  }, [video, target, start, page?.pageId]);
}

type Choice = { pages: readonly ReplayPage[]; chosen: string | undefined };

function PageChoice({ pages, chosen }: Choice) {
  return (
    <nav class="page-choice" aria-label="Recorded pages">
      {pages.map(({ pageId, url, startTimeMs, endTimeMs }) => (
        <button
          key={pageId}
          type="button"
          class="plain"
          aria-pressed={pageId === chosen}
          onClick={() => setQuery({ page: pageId })}
        >
          <Foreign text={url} max={40} /> {lengthText(endTimeMs - startTimeMs)}
        </button>
      ))}
    </nav>
  );
}

function Speeds({ video }: { video: Video }) {
  const [speed, setSpeed] = useState(1);
  return (
    <fieldset class="speeds">
      <legend class="hidden">Speed</legend>
      {SPEEDS.map((one) => (
        <button
          key={one}
          type="button"
          class="plain"
          aria-pressed={one === speed}
          onClick={() => {
            setSpeed(one);
            if (video.current) video.current.playbackRate = one;
          }}
        >
          {one}×
        </button>
      ))}
    </fieldset>
  );
}

function usePlayerKeys(video: Video): void {
  const seek = (seconds: number) => () => {
    if (video.current) video.current.currentTime += seconds;
  };
  const toggle = () => {
    const element = video.current;
    if (element?.paused) void element.play();
    else element?.pause();
  };
  useKeys([
    { keys: ' ', does: 'play or pause (Space)', run: toggle },
    { keys: 'ArrowLeft', does: '5 s back', run: seek(-STEP) },
    { keys: 'ArrowRight', does: '5 s forward', run: seek(STEP) },
  ]);
}
