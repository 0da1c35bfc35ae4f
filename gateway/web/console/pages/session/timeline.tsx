/** What happened when: one lane for each list of the log, and the place of the picture. */

import { lengthText } from '../../data/format.ts';
import type { Lane, Range } from '../../data/log/lanes.ts';
import type { ListName } from '../../data/log/model.ts';
import { seek, shown } from '../../data/playhead.ts';

const LANES: readonly [name: ListName, word: string][] = [
  ['net', 'Network'],
  ['cdp', 'CDP'],
  ['console', 'Console'],
];
const LANE_HEIGHT = 16;
const STEP_MS = 5_000;

type Props = { range: Range; lanes: Record<ListName, Lane> };

export function Timeline({ range, lanes }: Props) {
  const { from, to } = range;
  const at = Math.min(to, Math.max(from, shown.value ?? from));
  const share = (at - from) / Math.max(1, to - from);
  const move = (ms: number) => seek(Math.min(to, Math.max(from, ms)));
  const steps: Record<string, number> = {
    ArrowLeft: at - STEP_MS,
    ArrowRight: at + STEP_MS,
    Home: from,
    End: to,
  };
  return (
    <div class="timeline">
      <div class="lane-names" aria-hidden="true">
        {LANES.map(([name, word]) => (
          <span key={name}>{word}</span>
        ))}
      </div>
      <div
        class="lanes"
        role="slider"
        tabIndex={0}
        aria-label="Time"
        aria-valuemin={0}
        aria-valuemax={Math.round((to - from) / 1_000)}
        aria-valuenow={Math.round((at - from) / 1_000)}
        aria-valuetext={lengthText(at - from)}
        onClick={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect();
          move(from + ((clientX - left) / Math.max(1, width)) * (to - from));
        }}
        onKeyDown={(event) => {
          const next = Object.hasOwn(steps, event.key) ? steps[event.key] : undefined;
          if (next === undefined) return;
          event.preventDefault();
          move(next);
        }}
      >
        {LANES.map(([name]) => (
          <Bars key={name} lane={lanes[name]} />
        ))}
        {shown.value !== undefined && <span class="playhead" style={{ left: `${100 * share}%` }} />}
      </div>
      <span class="lane-end">{lengthText(to - from)}</span>
    </div>
  );
}

/** The height of a bar is the logarithm of its count: one entry stays visible beside hundreds. */
function Bars({ lane: { counts, failed } }: { lane: Lane }) {
  const max = Math.log2(1 + Math.max(1, ...counts));
  const heightOf = (count: number) => (LANE_HEIGHT * Math.log2(1 + count)) / max;
  const path = (values: readonly number[]) =>
    values
      .map((count, x) => (count === 0 ? '' : `M${x} ${LANE_HEIGHT}v${-heightOf(count)}h1V16z`))
      .join('');
  return (
    <svg
      class="lane"
      viewBox={`0 0 ${counts.length} ${LANE_HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path class="done" d={path(counts)} />
      <path class="failed" d={path(failed)} />
    </svg>
  );
}
