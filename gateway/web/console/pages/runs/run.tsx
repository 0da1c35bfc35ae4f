/** One run: when, what went in, what came out, what it wrote. */
import { withQuery } from '../../data/api.ts';
import { escaped, lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Run, RunDetail, RunLog, RunStep } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { RunState, Shape, type StateName } from '../../parts/state.tsx';
import { Copy, copy, Foreign, Id, Length, Time } from '../../parts/text.tsx';

const KINDS = ['INVOCATIONS'];

export function RunPage({ id }: { id: string }) {
  const path = `/v1/functions/invocations/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<RunDetail>(path, KINDS, id);
  useKeys([{ keys: 'c', does: "copy the run's id", run: () => void copy(id) }]);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  return (
    <div class="run">
      <Header run={value} />
      <Waterfall run={value} />
      {value.cause !== undefined && <Cause cause={value.cause} />}
      <div class="two">
        <Value title="Params" value={value.params} none="No params." />
        <Value title="Result" value={value.results} none="No result." />
      </div>
      <Logs id={id} path={path} startedAt={Date.parse(value.startedAt ?? value.createdAt)} />
    </div>
  );
}

function Header({ run }: { run: RunDetail }) {
  const { projectId } = route.value;
  const { value } = useLoad<Run>(`/console/api/v1/invocations/${run.id}`);
  const name = value?.functionName;
  return (
    <header class="session-head">
      <h1>{name === undefined ? 'Run' : <Foreign text={name} max={80} />}</h1>
      <RunState status={run.status} />
      <Id value={run.id} />
      <span class="fact">
        accepted <Time at={run.createdAt} />
      </span>
      <span class="fact">
        length{' '}
        <Length from={run.status === 'PENDING' ? undefined : run.startedAt} to={run.endedAt} />
      </span>
      <a href={withQuery(pathOf(projectId, 'sessions', run.sessionId), { tab: 'net' })}>
        its session
      </a>
    </header>
  );
}

const STEPS: Record<string, string> = {
  bundle: 'bundle loaded',
  'context load': 'context loaded',
  browser: 'browser started',
  handler: 'handler',
  'context save': 'context saved',
  close: 'session closed',
};

type Bar = { name: string; state: StateName; from: number; to: number };

/** Times of the bars count from the acceptance of the run. */
function Waterfall({ run }: { run: RunDetail }) {
  const { id, createdAt, startedAt, endedAt, status } = run;
  const isEnded = endedAt !== undefined;
  const path = isEnded ? `/console/api/v1/invocations/${id}/steps` : '';
  const { value } = useLoad<{ steps: RunStep[] }>(path);
  if (!isEnded || startedAt === undefined) return null;
  const waited = Math.max(0, Date.parse(startedAt) - Date.parse(createdAt));
  const ended = Date.parse(endedAt) - Date.parse(createdAt);
  const steps = (value?.steps ?? []).map(({ name, startMs, endMs, failed }): Bar => {
    const state = failed ? 'failed' : 'running';
    return { name: STEPS[name] ?? name, state, from: waited + startMs, to: waited + endMs };
  });
  const ran: Bar = {
    name: 'ran',
    state: status === 'FAILED' ? 'failed' : 'running',
    from: waited,
    to: ended,
  };
  const queue: Bar = { name: 'waited for a runner', state: 'waiting', from: 0, to: waited };
  const bars = [queue, ...(steps.length > 0 ? steps : [ran])];
  const all = Math.max(1, ...bars.map(({ to }) => to));
  return (
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
    </ol>
  );
}

function Cause({ cause }: { cause: NonNullable<RunDetail['cause']> }) {
  const { code, name, message, stack } = cause;
  const title = [name, message].filter((one) => one !== undefined && one !== '').join(': ');
  return (
    <section class="cause" aria-label="Cause">
      <h2>
        <Shape name="failed" /> {code}
      </h2>
      <p>
        <Foreign text={title} max={2_000} />
      </p>
      {stack !== undefined && <pre dir="ltr">{escaped(stack)}</pre>}
    </section>
  );
}

type ValueProps = { title: string; value: unknown; none: string };

function Value({ title, value, none }: ValueProps) {
  const text = value === undefined ? undefined : escaped(JSON.stringify(value, undefined, 2));
  return (
    <section class="value" aria-label={title}>
      <h2>{title}</h2>
      {text === undefined ? (
        <p class="hint">{none}</p>
      ) : (
        <div class="command">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys */}
          <pre dir="ltr" tabIndex={0}>
            {text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)}\n…` : text}
          </pre>
          <Copy text={text} label={`Copy the ${title.toLowerCase()}`} />
        </div>
      )}
    </section>
  );
}

/** Ours: a result of several MiB would block the page while it is drawn. Copying has it whole. */
const TEXT_MAX_CHARS = 100_000;
const LINES_MAX = 2_000;
const LEVELS: Record<string, StateName> = { error: 'failed', warn: 'waiting' };

type LogsProps = { id: string; path: string; startedAt: number };

function Logs({ id, path, startedAt }: LogsProps) {
  const { value, error, again } = useLoad<{ logs: RunLog[] }>(`${path}/logs`, KINDS, id);
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return null;
  const lines = value.logs.slice(-LINES_MAX);
  return (
    <section class="log" aria-label="Log">
      <h2>Log</h2>
      {lines.length === 0 && <p class="hint">The handler has written nothing.</p>}
      <ol>
        {lines.map(({ message, timestamp, level }, index) => (
          <li key={index}>
            <span class="at">{lengthText(timestamp - startedAt)}</span>
            <Shape name={LEVELS[level] ?? 'done'} />
            <span class="word">{level}</span>
            <Foreign text={message} max={4_000} />
          </li>
        ))}
      </ol>
    </section>
  );
}
