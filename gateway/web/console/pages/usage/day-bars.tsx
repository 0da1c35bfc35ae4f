/** One bar for each day, with the largest value and a part of each bar in another colour. */
import { State } from '../../parts/state.tsx';

export type DayValue = { at: string; value: number };

const WIDTH = 10;
const HEIGHT = 60;

type Props = {
  title: string;
  bars: readonly DayValue[];
  /** A part of each bar, such as those that failed. */
  parts?: readonly DayValue[];
  partWord?: string;
  textOf(value: number): string;
};

export function DayBars({ title, bars, parts, partWord = '', textOf }: Props) {
  const most = Math.max(0, ...bars.map(({ value }) => value));
  const max = Math.max(1, most); // of empty bars, too
  const total = textOf(sum(bars));
  const part = sum(parts ?? []);
  const days = bars.map(({ at }) => dayText(at));
  return (
    <figure class="bars">
      <figcaption>
        <strong>{title}</strong>
        <span>{total}</span>
        {part > 0 && <State name="failed" word={`${textOf(part)} ${partWord}`} />}
        {most > 0 && <span>at most {textOf(most)} a day</span>}
      </figcaption>
      <svg
        viewBox={`0 0 ${bars.length * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${total} in ${bars.length} days, at most ${textOf(most)} a day`}
      >
        {bars.map(({ at, value }, index) => {
          const own = parts?.[index]?.value ?? 0;
          const words = own > 0 ? `, ${textOf(own)} ${partWord}` : '';
          const text = `${dayText(at)}: ${textOf(value)}${words}`;
          const heights = { all: (value / max) * HEIGHT, part: (own / max) * HEIGHT };
          return <Bar key={at} x={index * WIDTH} title={text} heights={heights} />;
        })}
      </svg>
      <figcaption>
        <span>{days[0]}</span>
        <span>{days.at(-1)}</span>
      </figcaption>
    </figure>
  );
}

type BarProps = { x: number; title: string; heights: { all: number; part: number } };

function Bar({ x, title, heights: { all, part } }: BarProps) {
  const box = { x: x + 1, width: WIDTH - 2 };
  return (
    <g>
      <title>{title}</title>
      <rect class="all" x={x} width={WIDTH} y={0} height={HEIGHT} />
      <rect class="base" {...box} y={HEIGHT - 1} height={1} />
      <rect class="running" {...box} y={HEIGHT - all} height={all} />
      <rect class="failed" {...box} y={HEIGHT - part} height={part} />
    </g>
  );
}

/** `2026-11-24`, in UTC. */
export function dayText(at: string): string {
  return at.slice(0, 10);
}

function sum(values: readonly DayValue[]): number {
  return values.reduce((total, { value }) => total + value, 0);
}
