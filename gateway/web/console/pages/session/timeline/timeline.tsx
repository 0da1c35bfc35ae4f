/**
 * What happened when, on one clock: lanes below each other, and the place of the picture. A click
 * seeks; a drag limits the lists to a range of time. Idle stretches are folded to notches.
 */
import { lengthText } from '../../../data/format.ts';
import type { LogTimeline } from '../../../data/log/messages.ts';
import { isFolded, shown } from '../../../data/playhead.ts';
import type { Session } from '../../../data/types.ts';
import { useKeys } from '../../../parts/keys.tsx';
import { rangeOf, setRange, startOf } from '../clock.ts';
import type { Course } from './course.ts';
import { Bars, Parts, Ticks } from './lanes.tsx';
import { Slider } from './slider.tsx';
import { TimelineText } from './words.tsx';

type Props = { session: Session; timeline: LogTimeline; course: Course };

export function Timeline({ session, timeline, course }: Props) {
  const { fold, lanes } = isFolded.value ? timeline.folded : timeline.whole;
  const { pages, people, steps } = course;
  const rows = [
    { name: 'Pages', lane: <Parts fold={fold} spans={pages} kind="page" /> },
    { name: 'Visits', lane: <Ticks fold={fold} moments={timeline.navigations} /> },
    { name: 'Network', lane: <Bars lane={lanes.net} /> },
    { name: 'CDP', lane: <Bars lane={lanes.cdp} /> },
    { name: 'Console', lane: <Bars lane={lanes.console} /> },
  ];
  if (people.length > 0)
    rows.push({ name: 'People', lane: <Parts fold={fold} spans={people} kind="hand" /> });
  if (steps.length > 0)
    rows.push({ name: 'Steps', lane: <Parts fold={fold} spans={steps} kind="step" /> });
  useTimelineKeys(session);
  const { from, to } = timeline.range;
  return (
    <div class="timeline">
      {rows.map(({ name }, index) => (
        <span key={name} class="lane-name" style={{ gridRow: index + 1 }} aria-hidden="true">
          {name}
        </span>
      ))}
      <Slider session={session} fold={fold} rows={rows.length}>
        {rows.map(({ name, lane }) => (
          <div key={name} class="lane">
            {lane}
          </div>
        ))}
      </Slider>
      <div class="lane-end" style={{ gridRow: `1 / span ${rows.length}` }}>
        <button
          type="button"
          class="plain"
          aria-pressed={isFolded.value}
          title="Fold stretches of more than 5 s in which nothing happened (z)"
          onClick={toggleFold}
        >
          Fold idle
        </button>
        <span>{lengthText(to - from)}</span>
      </div>
      <TimelineText timeline={timeline} course={course} start={startOf(session)} />
    </div>
  );
}

function toggleFold(): void {
  isFolded.value = !isFolded.value;
}

function useTimelineKeys(session: Session): void {
  const range = rangeOf(session);
  const limit = (side: 'from' | 'to') => () => {
    const at = shown.peek();
    if (at === undefined) return;
    const { from, to } = range ?? { from: at, to: at };
    const next = side === 'from' ? { from: at, to: Math.max(at, to) } : { from, to: at };
    setRange(session, { from: Math.min(next.from, next.to), to: next.to });
  };
  useKeys([
    { keys: 'z', does: 'fold idle stretches', run: toggleFold },
    { keys: '[', does: 'the range begins here', run: limit('from') },
    { keys: ']', does: 'the range ends here', run: limit('to') },
  ]);
}
