/**
 * The picture of a session: the live view while it runs, and what was recorded after its end, or
 * when a person seeks back.
 */
import { useEffect } from 'preact/hooks';
import { isUtc } from '../../data/clock.ts';
import type { Range } from '../../data/log/fold.ts';
import { seekNowhere, wanted } from '../../data/playhead.ts';
import { partOf } from '../../data/share.ts';
import type { LiveView, Replays, Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useAgain, useLoad } from '../../parts/load.tsx';
import { canWatch } from './clock.ts';
import { ToLive } from './controls.tsx';
import { Player } from './player/player.tsx';

/** The live view posts this when its session ends. */
const GONE = 'browserbase-disconnected';

const NONE: readonly Range[] = [];

type Props = {
  session: Session;
  isMine: boolean;
  /** Stretches that the player may skip. */
  idle: readonly Range[] | undefined;
  ended: () => void;
};

export function Picture({ session, isMine, idle = NONE, ended }: Props) {
  void isUtc.value;
  const isBack = wanted.value !== undefined;
  useEffect(() => {
    if (isMine && isBack) seekNowhere(); // the mouse is that of the live picture
  }, [isMine, isBack]);
  if (canWatch(session) && (isMine || !isBack)) {
    return <Live session={session} isMine={isMine} ended={ended} />;
  }
  if (session.status === 'PENDING') {
    return (
      <section class="picture" aria-label="Picture">
        <p class="hint">The browser is starting.</p>
      </section>
    );
  }
  return <Recorded session={session} idle={idle} />;
}

function Live({ session, isMine, ended }: Omit<Props, 'idle'>) {
  const { value, error, again } = useLoad<LiveView>(partOf(session.id, 'debug'));
  useEffect(() => {
    const hear = ({ data }: MessageEvent) => {
      if (data === GONE) ended();
    };
    addEventListener('message', hear);
    return () => removeEventListener('message', hear);
  }, [ended]);
  return (
    <section class={`picture ${isMine ? 'mine' : ''}`} aria-label="Picture">
      {isMine && <p class="mine-note">You have the mouse and the keyboard.</p>}
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && (
        <iframe
          key={String(isMine)}
          title="Live view"
          src={liveUrl(value.debuggerUrl, !isMine)}
          sandbox="allow-scripts"
          allow="clipboard-read; clipboard-write"
        />
      )}
    </section>
  );
}

/** On this origin, which may differ from the public URL of the service. */
function liveUrl(debuggerUrl: string, isReadOnly: boolean): string {
  const { pathname, searchParams } = new URL(debuggerUrl, location.href);
  if (isReadOnly) searchParams.set('readonly', 'true');
  return `${pathname}?${searchParams}`;
}

type RecordedProps = { session: Session; idle: readonly Range[] };

function Recorded({ session, idle }: RecordedProps) {
  const isGrowing = canWatch(session);
  const path = partOf(session.id, 'replays');
  const { value, error, again } = useLoad<Replays>(path, ['SESSIONS'], session.id);
  useAgain(again, isGrowing);
  useKeys(
    isGrowing ? [{ keys: 'l or L', does: 'return to the live picture', run: seekNowhere }] : [],
  );
  if (value !== undefined && value.pages.length > 0) {
    return <Player session={session} pages={value.pages} idle={idle} />;
  }
  return (
    <section class="picture" aria-label="Picture">
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && (
        <p class="hint">
          {isGrowing
            ? 'Nothing is recorded yet: a recording grows by a part in about 30 s.'
            : 'The session has ended. No page of it was recorded.'}
        </p>
      )}
      {isGrowing && <ToLive />}
    </section>
  );
}
