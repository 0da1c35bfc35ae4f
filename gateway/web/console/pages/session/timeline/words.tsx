/** The timeline in words, for people who do not see it. */
import { lengthText } from '../../../data/format.ts';
import type { Range } from '../../../data/log/fold.ts';
import type { Lane } from '../../../data/log/lanes.ts';
import type { LogTimeline } from '../../../data/log/messages.ts';
import { Foreign } from '../../../parts/text.tsx';
import type { Course } from './course.ts';

/** Ours: a person listens to that many; the lists have all of them. */
const LINES_MAX = 30;

type Props = { timeline: LogTimeline; course: Course; start: number };

export function TimelineText({ timeline, course, start }: Props) {
  const { navigations, idle, whole } = timeline;
  const { net, cdp, console: lines } = whole.lanes;
  const at = (ms: number) => lengthText(ms - start);
  const during = ({ from, to }: Range) => `${at(from)} to ${at(to)}`;
  const spans = [...course.pages, ...course.people, ...course.steps].slice(0, LINES_MAX);
  return (
    <ul class="hidden" aria-label="Timeline">
      <li>{`Network: ${countsOf(net, 'answered with 4xx')}`}</li>
      <li>{`CDP: ${countsOf(cdp, 'slow')}`}</li>
      <li>{`Console: ${countsOf(lines, 'warnings')}`}</li>
      {spans.map((span, index) => (
        <li key={index}>
          <Foreign text={'text' in span ? span.text : span.name} max={80} /> {during(span)}
          {'failed' in span && span.failed && ', failed'}
        </li>
      ))}
      {navigations.slice(0, LINES_MAX).map(({ at: ms, url }, index) => (
        <li key={index}>
          visited <Foreign text={url} max={80} /> at {at(ms)}
        </li>
      ))}
      {idle.slice(0, LINES_MAX).map((range) => (
        <li key={range.from}>{`idle from ${during(range)}`}</li>
      ))}
    </ul>
  );
}

function countsOf({ done, waiting, failed }: Lane, waitingWord: string): string {
  const sum = (counts: readonly number[]) => counts.reduce((total, one) => total + one, 0);
  const [usual, marked, broken] = [sum(done), sum(waiting), sum(failed)];
  return `${usual + marked + broken}, ${marked} ${waitingWord}, ${broken} failed`;
}
