/** Lines that a handler or a build printed, and the log of one that is read on while it runs. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { lengthText } from '../../data/format.ts';
import { Failure } from '../load.tsx';
import { Shape, type StateName } from '../state.tsx';
import { Foreign } from '../text.tsx';

/** Ours: what one log has at most is 1 MiB; more lines than this are not drawn. */
const DRAWN_MAX = 2_000;
const MESSAGE_MAX_CHARS = 4_000;
const FOLLOW_MS = 1_000;
const LEVELS: Record<string, StateName> = { error: 'failed', warn: 'waiting' };
/** Pixels above the end at which the list still follows. */
const NEAR_END = 40;

/** Times are Unix milliseconds. */
export type LogLine = { number: number; timestamp: number; level: string; message: string };

type Props = {
  lines: readonly LogLine[];
  /** Unix ms that the times of the lines count from. */
  startedAt: number;
  isRunning: boolean;
  /** What an empty log says. */
  none: string;
};

/** The list stays at its end while it is there, as a terminal does. */
export function LogLines({ lines, startedAt, isRunning, none }: Props) {
  const box = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  const [level, setLevel] = useState('');
  const levels = [...new Set(lines.map((line) => line.level))].sort();
  const shown = level === '' ? lines : lines.filter((line) => line.level === level);
  const drawn = shown.slice(-DRAWN_MAX);
  useEffect(() => {
    const element = box.current;
    if (element !== null && isRunning && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [drawn.length, isRunning]);
  return (
    <section class="log" aria-label="Log">
      <div class="head">
        <h2>Log</h2>
        {isRunning && <span class="state running">follows</span>}
        <Levels levels={levels} level={level} set={setLevel} />
        {shown.length > drawn.length && (
          <small>
            the last {DRAWN_MAX} of {shown.length} lines
          </small>
        )}
      </div>
      {lines.length === 0 && <p class="hint">{none}</p>}
      <ol
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys
        tabIndex={0}
        aria-label="Lines"
        hidden={lines.length === 0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END;
        }}
      >
        {drawn.map(({ number, message, timestamp, level: own }) => (
          <li key={number}>
            <span class="at">{lengthText(timestamp - startedAt)}</span>
            <Shape name={LEVELS[own] ?? 'done'} />
            <span class="word">{own}</span>
            <Foreign text={message} max={MESSAGE_MAX_CHARS} />
          </li>
        ))}
      </ol>
    </section>
  );
}

type LevelsProps = { levels: readonly string[]; level: string; set(level: string): void };

function Levels({ levels, level, set }: LevelsProps) {
  if (levels.length < 2) return null;
  return (
    <select
      aria-label="Level"
      value={level}
      onChange={({ currentTarget }) => set(currentTarget.value)}
    >
      <option value="">all levels</option>
      {levels.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  );
}

type FollowedProps = Omit<Props, 'lines'> & { id: string };

/** The log of an invocation or a build. */
export function FollowedLog({ id, ...rest }: FollowedProps) {
  const { lines, isLoaded, error, again } = useLog(id, rest.isRunning);
  return (
    <>
      {error !== undefined && <Failure error={error} again={again} />}
      {isLoaded && <LogLines lines={lines} {...rest} />}
    </>
  );
}

type Read = { lines: LogLine[]; next: number; hasMore: boolean };
type Known = { lines: LogLine[]; isLoaded: boolean; error?: string };

/** Reads what is new each second while it runs, and once more when it has ended. */
function useLog(id: string, isRunning: boolean) {
  const next = useRef(0);
  const [known, setKnown] = useState<Known>({ lines: [], isLoaded: false });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const own = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const read = async () => {
      try {
        await readOn(id, next, (lines) => {
          if (own.signal.aborted) return false;
          setKnown((old) => ({ lines: [...old.lines, ...lines], isLoaded: true }));
          return true;
        });
      } catch (error) {
        if (own.signal.aborted) return;
        setKnown((old) => ({ ...old, error: sentenceOf(error) }));
      }
      if (isRunning && !own.signal.aborted) timer = setTimeout(look, FOLLOW_MS);
    };
    const look = () => {
      if (document.hidden) timer = setTimeout(look, FOLLOW_MS);
      else void read();
    };
    void read();
    return () => {
      own.abort();
      clearTimeout(timer);
    };
  }, [id, isRunning, tries]); // a try reads again
  return { ...known, error: known.error, again: () => setTries(tries + 1) };
}

async function readOn(
  id: string,
  next: { current: number },
  take: (lines: LogLine[]) => boolean,
): Promise<void> {
  for (let hasMore = true; hasMore; ) {
    const path = `/console/api/v1/logs/${encodeURIComponent(id)}?from=${next.current}`;
    const answer = await api<Read>(path);
    if (!take(answer.lines)) return;
    next.current = answer.next;
    hasMore = answer.hasMore;
  }
}
