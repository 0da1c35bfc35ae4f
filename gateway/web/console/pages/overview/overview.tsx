/** What runs, what waits, and what failed lately. */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { withQuery } from '../../data/api.ts';
import { isUtc, now } from '../../data/clock.ts';
import { timeText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Bucket, Overview } from '../../data/types.ts';
import { reasonText } from '../../data/webhooks.ts';
import { Bars, type Stack } from '../../parts/bars.tsx';
import { FirstSession } from '../../parts/first.tsx';
import { useKeys } from '../../parts/keys.tsx';
import { lazy } from '../../parts/lazy.tsx';
import { Failure, useAgain, useLoad } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import { Foreign, Time } from '../../parts/text.tsx';
import { Service } from './service.tsx';

const Quickstart = lazy(async () => (await import('./quickstart.tsx')).Quickstart);
const StartSession = lazy(async () => (await import('./start-session.tsx')).StartSession);

const KINDS = ['SESSIONS', 'INVOCATIONS', 'BUILDS', 'WEBHOOKS', 'DELIVERIES'];
const HOUR_MS = 3_600_000;
const BUCKET_S = 120;
/** Source: console.proto, CountBy. */
const REASONS: Stack = [
  ['left', 'done', 'last client left'],
  ['released', 'done', 'released', 1],
  ['function', 'done', 'of a run', 2],
  ['running', 'running', 'running'],
  ['pending', 'waiting', 'starting'],
  ['unvisited', 'waiting', 'nobody connected', 1],
  ['shutdown', 'waiting', 'service ended', 2],
  ['timeout', 'failed', 'timed out'],
  ['function_failed', 'failed', 'of a failed run', 1],
  ['browser_lost', 'failed', 'browser lost', 2],
  ['browser_failed', 'failed', 'browser did not start', 3],
  ['runner_lost', 'failed', 'runner lost'],
  ['no_runner', 'failed', 'no runner', 1],
  ['other', 'failed', 'other', 2],
];

export function OverviewPage() {
  const { value, error, again } = useLoad<Overview>('/console/api/v1/overview', KINDS);
  useAgain(again, true); // no change announces runners and the disk
  const [isStarting, setStarting] = useState(false);
  useKeys([{ keys: 'n', does: 'start a session', run: () => setStarting(true) }]);
  return (
    <>
      <div class="head">
        <h1>Overview</h1>
        <a href={pathOf(route.value.projectId, 'audit')}>Changes in the console</a>
        <span class="space" />
        <button type="button" class="main" onClick={() => setStarting(true)}>
          Start a session
        </button>
      </div>
      {isStarting && <StartSession close={() => setStarting(false)} />}
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value !== undefined && <Figures overview={value} />}
      {value !== undefined && !value.hasSessions && <FirstSession />}
      {value?.hasSessions && <LastHour />}
      {value !== undefined && <FailingFunctions overview={value} />}
      {value !== undefined && <FailingWebhooks overview={value} />}
      {value?.service !== undefined && <Service service={value.service} />}
      {value !== undefined && <Quickstart />}
    </>
  );
}

function Figures({ overview }: { overview: Overview }) {
  const { projectId } = route.value;
  const { sessions, sessionsMax, sessionsWaiting, invocations, invocationsMax, queued } = overview;
  return (
    <ul class="figures" aria-label="Now">
      <Figure
        href={withQuery(pathOf(projectId, 'sessions'), { status: 'RUNNING' })}
        name="Sessions"
      >
        {sessions}
        <small> of {sessionsMax}</small>
      </Figure>
      <Figure
        href={withQuery(pathOf(projectId, 'sessions'), { status: 'PENDING' })}
        name="Sessions that wait for a browser"
      >
        {sessionsWaiting}
      </Figure>
      <Figure href={withQuery(pathOf(projectId, 'runs'), { status: 'RUNNING' })} name="Runs">
        {invocations}
        <small> of {invocationsMax}</small>
      </Figure>
      <Figure
        href={withQuery(pathOf(projectId, 'runs'), { status: 'PENDING' })}
        name="Runs that wait for a runner"
      >
        {queued}
      </Figure>
      <Figure href={pathOf(projectId, 'functions')} name="Builds">
        {overview.builds}
      </Figure>
    </ul>
  );
}

type FigureProps = { href: string; name: string; children: ComponentChildren };

function Figure({ href, name, children }: FigureProps) {
  return (
    <li>
      <a href={href}>
        <span class="figure">{children}</span>
        <span>{name}</span>
      </a>
    </li>
  );
}

function LastHour() {
  const minute = Math.floor(now.value / (BUCKET_S * 1_000));
  const path = useMemo(() => {
    if (minute === 0) return '';
    const from = new Date((minute + 1) * BUCKET_S * 1_000 - HOUR_MS).toISOString();
    const query = { kind: 'SESSIONS', bucket: String(BUCKET_S), group: 'reason', from };
    return withQuery('/console/api/v1/counts', query);
  }, [minute]);
  const { value, error } = useLoad<{ buckets: Bucket[] }>(path, ['SESSIONS']);
  if (value === undefined && error === undefined) return <section class="hour" />;
  const from = (minute + 1) * BUCKET_S * 1_000 - HOUR_MS;
  return (
    <section class="hour" aria-label="Sessions of the last hour">
      <h2>Sessions started in the last hour, by how they ended</h2>
      {error !== undefined && <p class="error">{error}</p>}
      {value !== undefined && (
        <Bars
          buckets={value.buckets}
          stack={REASONS}
          noun="sessions"
          from={from}
          widthMs={BUCKET_S * 1_000}
          count={HOUR_MS / BUCKET_S / 1_000}
          timeOf={(ms) => timeText(ms, isUtc.value, now.value)}
        />
      )}
    </section>
  );
}

function FailingFunctions({ overview: { failingFunctions } }: { overview: Overview }) {
  const { projectId } = route.value;
  if (failingFunctions.length === 0) return null;
  return (
    <section class="failing">
      <h2>Functions whose newest runs failed</h2>
      <ul>
        {failingFunctions.map(({ id, name, failed, invocationId, failedAt, causeMessage }) => (
          <li key={id}>
            <State name="failed" word={`${failed} in 24 h`} />
            <a href={pathOf(projectId, 'runs', invocationId)}>
              <Foreign text={name} max={80} />
            </a>
            <Time at={failedAt} />
            {causeMessage !== undefined && <Foreign text={causeMessage} max={200} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function FailingWebhooks({ overview: { failingWebhooks } }: { overview: Overview }) {
  const { projectId } = route.value;
  if (failingWebhooks.length === 0) return null;
  return (
    <section class="failing">
      <h2>Webhooks that fail</h2>
      <ul>
        {failingWebhooks.map(({ id, endpoint, status, failingSince, disabledReason }) => (
          <li key={id}>
            <State
              name={status === 'DISABLED' ? 'waiting' : 'failed'}
              word={status === 'DISABLED' ? 'Disabled' : 'Failing'}
            />
            <a href={pathOf(projectId, 'webhooks', id)}>
              <Foreign text={endpoint} max={80} />
            </a>
            {failingSince !== undefined && (
              <span>
                since <Time at={failingSince} />
              </span>
            )}
            {disabledReason !== undefined && reasonText(disabledReason)}
          </li>
        ))}
      </ul>
    </section>
  );
}
