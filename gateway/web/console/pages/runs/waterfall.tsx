/** When each step of a run happened, and the moments of its session in the same time. */
import { lengthText, plain } from '../../data/format.ts';
import type { Tick, Ticks } from '../../data/log/ticks.ts';
import type { RunStep } from '../../data/types.ts';
import { Shape } from '../../parts/state.tsx';
import { Foreign } from '../../parts/text.tsx';
import { barsOf, type Timed } from './bars.ts';

const LANES: readonly [Tick['kind'], string][] = [
  ['navigation', 'navigations'],
  ['request', 'slow or failed requests'],
  ['console', 'console lines'],
];
const TEXT_MAX_CHARS = 200;

type Props = {
  run: Timed;
  steps: readonly RunStep[];
  ticks: Ticks;
  /** Unix ms. */
  now: number;
  /** The address of a moment; undefined where none can be opened. */
  hrefOf(tick: Tick): string | undefined;
  /** Shows that moment on this page. */
  seek(tick: Tick): void;
};

export function Waterfall({ run, steps, ticks, now, hrefOf, seek }: Props) {
  const bars = barsOf(run, steps, now);
  const start = Date.parse(run.createdAt);
  const all = Math.max(1, ...bars.map(({ to }) => to));
  const inRun = ticks.ticks.filter(({ at }) => at >= start && at - start <= all);
  return (
    <section aria-label="Course">
      <ol class="waterfall" aria-label="Steps">
        {bars.map(({ name, state, from, to }) => (
          <li key={`${name} ${from}`}>
            <span class="step">{name}</span>
            <span class="track">
              <span
                class={`bar ${state}`}
                style={{ left: `${(100 * from) / all}%`, width: `${(100 * (to - from)) / all}%` }}
              />
            </span>
            <span class="size">{lengthText(to - from)}</span>
          </li>
        ))}
        {LANES.map(([kind, word]) => {
          const own = inRun.filter((tick) => tick.kind === kind);
          return own.length === 0 ? null : (
            <Lane key={kind} word={word} ticks={own} range={{ start, all }} seek={seek} />
          );
        })}
      </ol>
      {inRun.length > 0 && (
        <Moments ticks={inRun} isCut={ticks.isCut} start={start} hrefOf={hrefOf} />
      )}
    </section>
  );
}

type LaneProps = {
  word: string;
  ticks: readonly Tick[];
  range: { start: number; all: number };
  seek(tick: Tick): void;
};

/** Marks for the pointer; the list below has the same for keys and for reading aloud. */
function Lane({ word, ticks, range: { start, all }, seek }: LaneProps) {
  return (
    <li>
      <span class="step">{word}</span>
      <span class="track lane" aria-hidden="true">
        {ticks.map((tick) => (
          <button
            key={`${tick.list} ${tick.index}`}
            type="button"
            class={`tick ${tick.state}`}
            tabIndex={-1}
            title={`${lengthText(tick.at - start)}  ${plain(tick.text, TEXT_MAX_CHARS)}`}
            style={{
              left: `${(100 * (tick.at - start)) / all}%`,
              width: `${(100 * Math.min(tick.lengthMs ?? 0, all - tick.at + start)) / all}%`,
            }}
            onClick={() => seek(tick)}
          />
        ))}
      </span>
      <span class="size">{ticks.length}</span>
    </li>
  );
}

type MomentsProps = Pick<Props, 'hrefOf'> & {
  ticks: readonly Tick[];
  isCut: boolean;
  start: number;
};

function Moments({ ticks, isCut, start, hrefOf }: MomentsProps) {
  return (
    <details>
      <summary>
        {ticks.length} moments of its session{isCut && ' (the first ones)'}
      </summary>
      <ol class="moments">
        {ticks.map((tick) => (
          <li key={`${tick.list} ${tick.index}`}>
            <span class="at">{lengthText(tick.at - start)}</span>
            <Shape name={tick.state} />
            <MomentLink tick={tick} href={hrefOf(tick)} />
            {tick.lengthMs !== undefined && <small>{lengthText(tick.lengthMs)}</small>}
          </li>
        ))}
      </ol>
    </details>
  );
}

function MomentLink({ tick, href }: { tick: Tick; href: string | undefined }) {
  const text = <Foreign text={tick.text} max={TEXT_MAX_CHARS} />;
  return href === undefined ? text : <a href={href}>{text}</a>;
}
