/** The recording of a session: one page of it at a time, on the session's clock. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { inProject, sentenceOf } from '../../../data/api.ts';
import { lengthText, offsetText } from '../../../data/format.ts';
import type { Range } from '../../../data/log/fold.ts';
import { seek, shown, skipsIdle } from '../../../data/playhead.ts';
import { route } from '../../../data/router.ts';
import { partOf } from '../../../data/share.ts';
import type { ReplayPage, Session } from '../../../data/types.ts';
import { announce } from '../../../parts/notice.tsx';
import { Foreign } from '../../../parts/text.tsx';
import { canWatch, startOf } from '../clock.ts';
import { ToLive, toggleFull } from '../controls.tsx';
import { save } from '../save.ts';
import { feed } from './feed.ts';
import { SPEEDS, toggle, usePlayerKeys } from './keys.ts';
import { usePlayhead } from './playhead.ts';
import type { Video } from './video.ts';

type Props = { session: Session; pages: readonly ReplayPage[]; idle: readonly Range[] };

export function Player({ session, pages, idle }: Props) {
  const chosen = route.value.query.get('page');
  const page = pages.find(({ pageId }) => pageId === chosen) ?? pages[0];
  const video = useRef<HTMLVideoElement>(null);
  const [speed, setSpeed] = useState(1);
  const isGrowing = canWatch(session);
  const error = useFeed(video, inProject(partOf(session.id, `replays/${page?.pageId ?? '0'}`)));
  usePlayhead({ video, session, pages, page, idle });
  usePlayerKeys({ video, speed, setSpeed, isGrowing });
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    element.defaultPlaybackRate = speed; // of the next page
    element.playbackRate = speed;
  }, [speed]);
  return (
    <section class="picture recorded" aria-label="Picture">
      <PageChoice session={session} pages={pages} chosen={page?.pageId} />
      {error !== undefined && <p class="error">{error}</p>}
      <video
        ref={video}
        muted
        playsInline
        hidden={error !== undefined}
        onClick={() => toggle(video)}
      />
      <div class="controls">
        <PlayButton video={video} />
        <Clock start={startOf(session)} />
        <Speeds speed={speed} setSpeed={setSpeed} />
        <button
          type="button"
          class="plain"
          aria-pressed={skipsIdle.value}
          title="Skip stretches of more than 5 s in which nothing happened"
          onClick={() => {
            skipsIdle.value = !skipsIdle.value;
          }}
        >
          Skip idle
        </button>
        <button type="button" class="plain" onClick={() => void snapshot(video, session)}>
          Snapshot
        </button>
        <button type="button" class="plain" title="f" onClick={toggleFull}>
          Full screen
        </button>
        {isGrowing && (
          <>
            <span class="hint">recorded up to {lengthText(page?.endTimeMs ?? 0)}</span>
            <ToLive />
          </>
        )}
      </div>
    </section>
  );
}

function PlayButton({ video }: { video: Video }) {
  const [isPaused, setPaused] = useState(true);
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    const look = () => setPaused(element.paused);
    const types = ['play', 'pause', 'emptied'];
    for (const type of types) element.addEventListener(type, look);
    return () => {
      for (const type of types) element.removeEventListener(type, look);
    };
  }, [video]);
  return (
    <button type="button" class="play" title="Space" onClick={() => toggle(video)}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={isPaused ? 'M4 2.5 13 8l-9 5.5z' : 'M3.5 3h3v10h-3zM9.5 3h3v10h-3z'} />
      </svg>
      {isPaused ? 'Play' : 'Pause'}
    </button>
  );
}

/** Moves with the picture, alone. */
function Clock({ start }: { start: number }) {
  const at = shown.value;
  return <span class="clock">{at === undefined ? '–' : `${offsetText(at - start)} s`}</span>;
}

/** Feeds the video; returns why it cannot be played. */
function useFeed(video: Video, url: string): string | undefined {
  const [error, setError] = useState<string>();
  useEffect(() => {
    const element = video.current;
    if (element === null) return;
    const own = new AbortController();
    setError(undefined);
    feed(element, url, own.signal).catch((reason: unknown) => {
      if (!own.signal.aborted) setError(sentenceOf(reason));
    });
    return () => own.abort();
  }, [video, url]);
  return error;
}

type Choice = { session: Session; pages: readonly ReplayPage[]; chosen: string | undefined };

function PageChoice({ session, pages, chosen }: Choice) {
  return (
    <nav class="page-choice" aria-label="Recorded pages">
      {pages.map(({ pageId, url, startTimeMs, endTimeMs }) => (
        <button
          key={pageId}
          type="button"
          class="plain"
          aria-pressed={pageId === chosen}
          onClick={() => seek(startOf(session) + startTimeMs, Number(pageId))}
        >
          <Foreign text={url} max={40} />{' '}
          <span class="none">
            {lengthText(startTimeMs)} – {lengthText(endTimeMs)}
          </span>
        </button>
      ))}
    </nav>
  );
}

type SpeedProps = { speed: number; setSpeed(speed: number): void };

function Speeds({ speed, setSpeed }: SpeedProps) {
  return (
    <fieldset class="speeds">
      <legend class="hidden">Speed</legend>
      {SPEEDS.map((one) => (
        <button
          key={one}
          type="button"
          class="plain"
          aria-pressed={one === speed}
          onClick={() => setSpeed(one)}
        >
          {one}×
        </button>
      ))}
    </fieldset>
  );
}

/** Saves the frame that is shown as a PNG file. */
async function snapshot({ current: element }: Video, session: Session): Promise<void> {
  if (element === null || element.videoWidth === 0) {
    announce('There is no frame yet.');
    return;
  }
  const canvas = new OffscreenCanvas(element.videoWidth, element.videoHeight);
  canvas.getContext('2d')?.drawImage(element, 0, 0);
  const file = await canvas.convertToBlob({ type: 'image/png' });
  const seconds = ((shown.peek() ?? startOf(session)) - startOf(session)) / 1_000;
  save(file, `${session.id}-${seconds.toFixed(3)}.png`);
}
