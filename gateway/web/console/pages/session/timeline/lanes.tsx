/** The drawn parts of a timeline. `words.tsx` has the same in words. */
import { useMemo } from 'preact/hooks';
import { lengthText } from '../../../data/format.ts';
import { type Fold, placeOf, type Range } from '../../../data/log/fold.ts';
import type { Lane, Weight } from '../../../data/log/lanes.ts';
import { Foreign } from '../../../parts/text.tsx';

const HEIGHT = 14;
/** Of the width of a lane. Ours: a span that is too short to be seen is drawn with this. */
const WIDTH_MIN = 0.002;
/** Ours: more notches are too narrow for their texts. */
const NOTCH_TEXTS_MAX = 8;

/**
 * Usual entries stand on the ground; those to look at and failures hang from the top. The height of
 * a bar is the logarithm of its count: one entry stays visible beside hundreds.
 */
export function Bars({ lane }: { lane: Lane }) {
  const paths = useMemo(() => {
    const max = Math.log2(1 + Math.max(1, ...lane.done, ...lane.waiting, ...lane.failed));
    const heightOf = (count: number) =>
      ((0.4 + (0.6 * Math.log2(1 + count)) / max) * HEIGHT).toFixed(1);
    const pathOf = (weight: Weight) => {
      const [ground, sign] = weight === 'done' ? [HEIGHT, '-'] : [0, ''];
      const bars = lane[weight].map((count, x) =>
        count === 0 ? '' : `M${x} ${ground}v${sign}${heightOf(count)}h1V${ground}z`,
      );
      return bars.join('');
    };
    return { done: pathOf('done'), waiting: pathOf('waiting'), failed: pathOf('failed') };
  }, [lane]);
  return (
    <svg
      class="bars-lane"
      viewBox={`0 0 ${lane.done.length} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path class="done" d={paths.done} />
      <path class="waiting" d={paths.waiting} />
      <path class="failed" d={paths.failed} />
    </svg>
  );
}

type Drawn = Range & { name: string; text?: string; row?: number; failed?: boolean };

/** Spans of time with their names. A click on a page jumps to it. */
export function Parts({
  fold,
  spans,
  kind,
}: {
  fold: Fold;
  spans: readonly Drawn[];
  kind: string;
}) {
  const rows = Math.max(1, ...spans.map(({ row = 0 }) => row + 1));
  return (
    <div class="parts" style={{ height: `${rows * HEIGHT}px` }} aria-hidden="true">
      {spans.map(({ name, text = name, from, to, row = 0, failed = false }) => {
        const left = placeOf(fold, from);
        const width = Math.max(WIDTH_MIN, placeOf(fold, to) - left);
        return (
          <span
            key={`${name} ${from}`}
            class={`part ${kind} ${failed ? 'failed' : ''}`}
            data-page={kind === 'page' ? name : undefined}
            style={{ left: `${100 * left}%`, width: `${100 * width}%`, top: `${row * HEIGHT}px` }}
          >
            <Foreign text={shortOf(text)} max={80} />
          </span>
        );
      })}
    </div>
  );
}

/** An address without its scheme. */
function shortOf(text: string): string {
  return text.replace(/^https?:\/\//, '');
}

type TicksProps = { fold: Fold; moments: readonly { at: number }[] };

export function Ticks({ fold, moments }: TicksProps) {
  const path = useMemo(() => {
    return moments.map(({ at }) => `M${(1_000 * placeOf(fold, at)).toFixed(1)} 1v12`).join('');
  }, [fold, moments]);
  return (
    <svg class="ticks" viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

/** Folded stretches, with the folded time while there is room for it. */
export function Notches({ fold }: { fold: Fold }) {
  const notches = fold.filter(({ isIdle }) => isIdle);
  const hasRoom = notches.length <= NOTCH_TEXTS_MAX;
  const path = notches
    .map(({ left, right }) => `M${1_000 * left} 0H${1_000 * right}V1H${1_000 * left}z`)
    .join('');
  return (
    <>
      <svg class="notches" viewBox="0 0 1000 1" preserveAspectRatio="none" aria-hidden="true">
        <path d={path} />
      </svg>
      {hasRoom &&
        notches.map(({ from, to, left, right }) => (
          <span
            key={from}
            class="notch"
            aria-hidden="true"
            style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%` }}
          >
            {lengthText(to - from, true)}
          </span>
        ))}
    </>
  );
}
