/** One bar for each day, with the largest value and a part of each bar in another colour. */
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
  const max = Math.max(1, ...bars.map(({ value }) => value));
  const total = sum(bars);
  const part = sum(parts ?? []);
  const first = bars[0]?.at;
  const last = bars.at(-1)?.at;
  return (
    <figure class="bars">
      <figcaption>
        <strong>{title}</strong>
        <span>{textOf(total)}</span>
        {part > 0 && (
          <span class="state failed">
            {textOf(part)} {partWord}
          </span>
        )}
      </figcaption>
      <svg
        viewBox={`0 0 ${bars.length * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${textOf(total)} in ${bars.length} days, at most ${textOf(max)} a day`}
      >
        {bars.map(({ at, value }, index) => {
          const height = (value / max) * HEIGHT;
          const own = parts?.[index]?.value ?? 0;
          const partHeight = (own / max) * HEIGHT;
          const words = own > 0 ? `, ${textOf(own)} ${partWord}` : '';
          const box = { x: index * WIDTH + 1, width: WIDTH - 2 };
          return (
            <g key={at}>
              <title>{`${dayText(at)}: ${textOf(value)}${words}`}</title>
              <rect class="all" x={index * WIDTH} width={WIDTH} y={0} height={HEIGHT} />
              <rect class="base" {...box} y={HEIGHT - 1} height={1} />
              <rect class="running" {...box} y={HEIGHT - height} height={height} />
              <rect class="failed" {...box} y={HEIGHT - partHeight} height={partHeight} />
            </g>
          );
        })}
      </svg>
      <figcaption>
        <span>{first !== undefined && dayText(first)}</span>
        <span>{last !== undefined && dayText(last)}</span>
      </figcaption>
    </figure>
  );
}

/** `2026-11-24`, in UTC. */
export function dayText(at: string): string {
  return at.slice(0, 10);
}

function sum(values: readonly DayValue[]): number {
  return values.reduce((total, { value }) => total + value, 0);
}
