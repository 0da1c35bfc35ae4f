/** The picture of a run's session, small: live while it runs, then what it showed last. */
import { useEffect } from 'preact/hooks';
import { withQuery } from '../../data/api.ts';
import { offsetText } from '../../data/format.ts';
import { seek, seekNowhere, shown, wanted } from '../../data/playhead.ts';
import type { Replays, Session } from '../../data/types.ts';
import { useLoad } from '../../parts/load.tsx';
import { Picture } from '../session/picture.tsx';

/** Ours: at the very end there may be no frame. */
const BEFORE_END_MS = 300;

type Props = {
  session: Session;
  /** The path of the session's page. */
  place: string;
};

export function RunPicture({ session, place }: Props) {
  const { id, endedAt, startedAt, createdAt } = session;
  const canWatch = session.status === 'RUNNING' && !session.isReleased;
  const path = endedAt === undefined ? '' : `/v1/sessions/${id}/replays`;
  const { value } = useLoad<Replays>(path, ['SESSIONS'], id);
  const from = Date.parse(startedAt ?? createdAt);
  const last = value?.pages.toSorted((a, b) => a.endTimeMs - b.endTimeMs).at(-1);
  const page = Number(last?.pageId);
  const at = last && from + Math.max(last.startTimeMs, last.endTimeMs - BEFORE_END_MS);
  useEffect(() => {
    if (at !== undefined) seek(at, page);
  }, [at, page]);
  useEffect(() => () => seekNowhere(), []);
  return (
    <section class="run-picture" aria-label="Its session">
      <Picture
        key={session.status}
        session={session}
        isMine={false}
        idle={undefined}
        ended={() => undefined}
      />
      <Moment session={session} place={place} canWatch={canWatch} />
    </section>
  );
}

function Moment({ session, place, canWatch }: Props & { canWatch: boolean }) {
  const from = Date.parse(session.startedAt ?? session.createdAt);
  const at = shown.value ?? wanted.value?.at;
  const t = at === undefined ? undefined : offsetText(Math.max(0, at - from));
  return <a href={withQuery(place, { t: canWatch ? undefined : t })}>{textOf(canWatch, t)}</a>;
}

function textOf(canWatch: boolean, t: string | undefined): string {
  if (canWatch) return 'Watch it, or take over';
  return t === undefined ? 'Open the session' : 'Open the session at this moment';
}
