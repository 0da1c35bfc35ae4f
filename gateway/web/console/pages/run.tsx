/** One run: when, what went in, what came out, what it wrote. */
import { withQuery } from '../data/api.ts';
import { escaped, lengthText } from '../data/format.ts';
import { pathOf } from '../data/route.ts';
import { route } from '../data/router.ts';
import type { Run, RunDetail, RunLog } from '../data/types.ts';
import { useKeys } from '../parts/keys.tsx';
import { Failure, useLoad } from '../parts/load.tsx';
import { RunState, Shape, type StateName } from '../parts/state.tsx';
import { Copy, copy, Foreign, Id, Length, Time } from '../parts/text.tsx';

const KINDS = ['INVOCATIONS'];

export function RunPage({ id }: { id: string }) {
  const path = `/v1/functions/invocations/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<RunDetail>(path, KINDS);
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
      <Logs path={path} startedAt={Date.parse(value.startedAt ?? value.createdAt)} />
    </div>
  );
}

function Header({ run }: { run: RunDetail }) {
  const { projectId } = route.value;
  const path = withQuery('/console/api/v1/invocations', { text: run.id, limit: '1' });
  const { value } = useLoad<{ invocations: Run[] }>(path);
  const name = value?.invocations[0]?.functionName;
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

function Waterfall({ run: { createdAt, startedAt, endedAt, status } }: { run: RunDetail }) {
  if (endedAt === undefined || startedAt === undefined) return null;
  const [from, start, end] = [createdAt, startedAt, endedAt].map((at) => Date.parse(at));
  const all = Math.max(1, (end ?? 0) - (from ?? 0));
  const waited = (start ?? 0) - (from ?? 0);
  const ran = (end ?? 0) - (start ?? 0);
  const steps: [name: string, state: StateName, ms: number, before: number][] = [
    ['waited for a runner', 'waiting', waited, 0],
    ['ran', status === 'FAILED' ? 'failed' : 'running', ran, waited],
  ];
  return (
    <ol class="waterfall" aria-label="Steps">
      {steps.map(([name, state, ms, before]) => (
        <li key={name}>
          <span class="step">{name}</span>
          <span class="track">
            <span
              class={`bar ${state}`}
              style={{ left: `${(100 * before) / all}%`, width: `${(100 * ms) / all}%` }}
            />
          </span>
          <span class="size">{lengthText(ms)}</span>
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

function Logs({ path, startedAt }: { path: string; startedAt: number }) {
  const { value, error, again } = useLoad<{ logs: RunLog[] }>(`${path}/logs`, KINDS);
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
