/** Counts over time as stacked bars. */
import type { Bucket } from '../data/types.ts';
import { Shape, type StateName } from './state.tsx';

/** Groups from the bottom to the top. Several of one state differ by their shade, 0 to 3. */
export type Stack = readonly [key: string, state: StateName, word: string, shade?: number][];

const HEIGHT = 60;
const WIDTH = 10;

type Props = {
  buckets: readonly Bucket[];
  stack: Stack;
  /** What is counted, in words. */
  noun: string;
  /** Unix ms of the first bar. */
  from: number;
  widthMs: number;
  count: number;
  timeOf(ms: number): string;
};

export function Bars({ buckets, stack, noun, from, widthMs, count, timeOf }: Props) {
  const bars = Array.from({ length: count }, (_, index) => {
    const at = from + index * widthMs;
    return { at, own: buckets.filter((one) => Date.parse(one.at) === at) };
  });
  const max = Math.max(1, ...bars.map(({ own }) => sum(own)));
  const total = sum(buckets);
  return (
    <figure class="bars">
      <svg
        viewBox={`0 0 ${count * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total} ${noun}, at most ${max} in ${widthMs / 60_000} minutes`}
      >
        {bars.map(({ at, own }, index) => {
          const bar = { own, stack, x: index * WIDTH, scale: HEIGHT / max };
          return <Bar key={at} {...bar} title={timeOf(at)} />;
        })}
      </svg>
      <figcaption>
        <span>{timeOf(from)}</span>
        {stack.map(([key, state, word, shade = 0]) => {
          const own = sum(buckets.filter((one) => one.key === key));
          return own === 0 ? null : (
            <span key={key} class={`state ${state}`}>
              <i class={`swatch ${state} shade-${shade}`} aria-hidden="true" />
              <Shape name={state} />
              {own} {word}
            </span>
          );
        })}
        <span>{timeOf(from + count * widthMs)}</span>
      </figcaption>
    </figure>
  );
}

type BarProps = {
  own: readonly Bucket[];
  stack: Stack;
  x: number;
  scale: number;
  title: string;
};

function Bar({ own, stack, x, scale, title }: BarProps) {
  let top = HEIGHT;
  const parts = stack.flatMap(([key, state, word, shade = 0]) => {
    const number = sum(own.filter((one) => one.key === key));
    top -= number * scale;
    return number === 0 ? [] : [{ key, state, word, shade, number, top }];
  });
  const words = parts.map(({ number, word }) => `${number} ${word}`);
  return (
    <g>
      <title>{[`${title}: ${sum(own)}`, ...words].join(', ')}</title>
      <rect class="base" x={x + 1} y={HEIGHT - 1} width={WIDTH - 2} height={1} />
      {parts.map((part) => (
        <rect
          key={part.key}
          class={`${part.state} shade-${part.shade}`}
          x={x + 1}
          y={part.top}
          width={WIDTH - 2}
          height={part.number * scale}
        />
      ))}
    </g>
  );
}

function sum(buckets: readonly Bucket[]): number {
  return buckets.reduce((total, { count }) => total + count, 0);
}
