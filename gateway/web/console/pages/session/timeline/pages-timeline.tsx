/** A timeline of the recorded pages alone, for a session whose log is not shown. */
import { now } from '../../../data/clock.ts';
import { foldOf } from '../../../data/log/fold.ts';
import { inRows } from '../../../data/log/spans.ts';
import { partOf } from '../../../data/share.ts';
import type { Replays, Session } from '../../../data/types.ts';
import { useAgain, useLoad } from '../../../parts/load.tsx';
import { canWatch, startOf } from '../clock.ts';
import { Parts } from './lanes.tsx';
import { Slider } from './slider.tsx';

export function PagesTimeline({ session }: { session: Session }) {
  const { value, again } = useLoad<Replays>(
    partOf(session.id, 'replays'),
    ['SESSIONS'],
    session.id,
  );
  useAgain(again, canWatch(session));
  const start = startOf(session);
  const end = session.endedAt === undefined ? now.value : Date.parse(session.endedAt);
  const spans = (value?.pages ?? []).map(({ pageId, url, startTimeMs, endTimeMs }) => {
    return { name: pageId, text: url, from: start + startTimeMs, to: start + endTimeMs };
  });
  const last = Math.max(end, ...spans.map(({ to }) => to));
  const fold = foldOf({ from: start, to: last }, []);
  return (
    <div class="timeline">
      <span class="lane-name" aria-hidden="true">
        Pages
      </span>
      <Slider session={session} fold={fold} rows={1}>
        <div class="lane">
          <Parts fold={fold} spans={inRows(spans)} kind="page" />
        </div>
      </Slider>
    </div>
  );
}
