/** Counts over time as stacked bars. */
import type { Bucket } from '../data/types.ts';
import { Shape, type StateName } from './state.tsx';

const STACK: readonly [key: string, state: StateName, word: string][] = [
  ['COMPLETED', 'done', 'ended'],
  ['RUNNING', 'running', 'running'],
  ['PENDING', 'waiting', 'starting'],
  ['TIMED_OUT', 'failed', 'timed out'],
  ['ERROR', 'failed', 'failed'],
];
const HEIGHT = 60;
const WIDTH = 10;

type Props = {
  buckets: readonly Bucket[];
  /** Unix ms of the first bar. */
  from: number;
  widthMs: number;
  count: number;
  timeOf(ms: number): string;
};

export function Bars({ buckets, from, widthMs, count, timeOf }: Props) {
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
        aria-label={`${total} sessions, at most ${max} in ${widthMs / 60_000} minutes`}
      >
        {bars.map(({ at, own }, index) => (
          <Bar key={at} own={own} x={index * WIDTH} scale={HEIGHT / max} title={timeOf(at)} />
        ))}
      </svg>
      <figcaption>
        <span>{timeOf(from)}</span>
        {STACK.map(([key, state, word]) => {
          const own = sum(buckets.filter((one) => one.key === key));
          return own === 0 ? null : (
            <span key={key} class={`state ${state}`}>
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

type BarProps = { own: readonly Bucket[]; x: number; scale: number; title: string };

function Bar({ own, x, scale, title }: BarProps) {
  let top = HEIGHT;
  const parts = STACK.map(([key, state]) => {
    const height = sum(own.filter((one) => one.key === key)) * scale;
    top -= height;
    return { key, state, top, height };
  });
  return (
    <g>
      <title>{`${title}: ${sum(own)}`}</title>
      <rect class="base" x={x + 1} y={HEIGHT - 1} width={WIDTH - 2} height={1} />
      {parts.map((part) =>
        part.height === 0 ? null : (
          <rect
            key={part.key}
            class={part.state}
            x={x + 1}
            y={part.top}
            width={WIDTH - 2}
            height={part.height}
          />
        ),
      )}
    </g>
  );
}

function sum(buckets: readonly Bucket[]): number {
  return buckets.reduce((total, { count }) => total + count, 0);
}
