/** One run: when, what went in, what came out, what it wrote, what its session did. */
import { useState } from 'preact/hooks';
import { baseUrl, withQuery } from '../../data/api.ts';
import { now } from '../../data/clock.ts';
import { offsetText } from '../../data/format.ts';
import type { Tick } from '../../data/log/ticks.ts';
import { seek } from '../../data/playhead.ts';
import { pathOf } from '../../data/route.ts';
import { route, setQuery } from '../../data/router.ts';
import type { Run, RunDetail, RunStep, Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { RunState } from '../../parts/state.tsx';
import { copy, Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { FollowedLog } from '../../parts/values/log-lines.tsx';
import { commandsOf } from '../functions/calls.ts';
import { cancelRuns, isOpenRun } from './cancel.ts';
import { Compare } from './compare.tsx';
import { Deliveries } from './deliveries.tsx';
import { Cause, Value } from './outcome.tsx';
import { RunPicture } from './picture.tsx';
import { RunAgain } from './run-again.tsx';
import { useTicks } from './use-ticks.ts';
import { Waterfall } from './waterfall.tsx';

const KINDS = ['INVOCATIONS'];

export function RunPage({ id }: { id: string }) {
  const path = `/v1/functions/invocations/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<RunDetail>(path, KINDS, id);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  return <Open run={value} />;
}

function Open({ run }: { run: RunDetail }) {
  const [isAgain, setAgain] = useState(false);
  const { value: row } = useLoad<Run>(`/console/api/v1/invocations/${run.id}`);
  const other = route.value.query.get('with');
  const isEnded = run.endedAt !== undefined;
  useKeys([
    { keys: 'c', does: "copy the run's id", run: () => void copy(run.id) },
    { keys: 'r', does: 'run again', run: () => setAgain(true) },
    { keys: 'd', does: 'compare with another run', run: () => setQuery({ with: 'last' }, true) },
  ]);
  return (
    <div class="run">
      <Header run={run} name={row?.functionName} again={() => setAgain(true)} />
      <Course run={run} />
      {run.cause !== undefined && <Cause cause={run.cause} />}
      {other !== null && <Compare run={run} other={other} />}
      <div class="two">
        <Value title="Params" value={run.params} none="No params.">
          {row !== undefined && <CopyCalls run={run} name={row.functionName} />}
        </Value>
        <Value
          title="Result"
          value={run.results}
          none={isEnded ? 'No result.' : 'It has not ended.'}
        />
      </div>
      <FollowedLog
        id={run.id}
        startedAt={Date.parse(run.startedAt ?? run.createdAt)}
        isRunning={!isEnded}
        none="The handler has written nothing."
      />
      <Deliveries id={run.id} />
      {isAgain && <RunAgain run={run} close={() => setAgain(false)} />}
    </div>
  );
}

type HeaderProps = { run: RunDetail; name: string | undefined; again(): void };

function Header({ run, name, again }: HeaderProps) {
  const { projectId } = route.value;
  return (
    <header class="session-head">
      <h1>
        {name === undefined ? (
          'Run'
        ) : (
          <a href={pathOf(projectId, 'functions', run.functionId)}>
            <Foreign text={name} max={80} />
          </a>
        )}
      </h1>
      <RunState status={run.status} />
      <Id value={run.id} />
      <span class="fact">
        version <Id value={run.versionId} />
      </span>
      <span class="fact">
        accepted <Time at={run.createdAt} />
      </span>
      {run.trigger !== undefined && (
        <span class="fact">
          schedule <Id value={run.trigger.scheduleId} />, for <Time at={run.trigger.scheduledFor} />
        </span>
      )}
      <span class="fact">
        length{' '}
        <Length from={run.status === 'PENDING' ? undefined : run.startedAt} to={run.endedAt} />
      </span>
      <a href={withQuery(pathOf(projectId, 'sessions', run.sessionId), { tab: 'net' })}>
        its session
      </a>
      <span class="space" />
      <button type="button" class="main" onClick={again}>
        Run again
      </button>
      <button type="button" onClick={() => setQuery({ with: 'last' }, true)}>
        Compare
      </button>
      {isOpenRun(run) && (
        <button type="button" class="danger" onClick={() => void cancelRuns([run.id])}>
          Cancel
        </button>
      )}
    </header>
  );
}

/** The waterfall and the picture: a moment that is chosen in one is shown in the other. */
function Course({ run }: { run: RunDetail }) {
  const { projectId } = route.value;
  const { id, sessionId, startedAt, createdAt, endedAt } = run;
  const isEnded = endedAt !== undefined;
  const { value } = useLoad<{ steps: RunStep[] }>(
    isEnded ? `/console/api/v1/invocations/${id}/steps` : '',
  );
  const { value: session } = useLoad<Session>(
    `/console/api/v1/sessions/${sessionId}`,
    ['SESSIONS'],
    sessionId,
  );
  const from = Date.parse(startedAt ?? createdAt);
  const ticks = useTicks(sessionId, from, !isEnded);
  const place = pathOf(projectId, 'sessions', sessionId);
  const sessionFrom = Date.parse(session?.startedAt ?? session?.createdAt ?? createdAt);
  const hrefOf = ({ list, index, at }: Tick) =>
    withQuery(place, { tab: list, e: String(index), t: offsetText(at - sessionFrom) });
  return (
    <div class="course">
      <Waterfall
        run={run}
        steps={value?.steps ?? []}
        ticks={ticks}
        now={isEnded ? 0 : now.value}
        hrefOf={hrefOf}
        seek={({ at, page }) => seek(at, page)}
      />
      {session !== undefined && <RunPicture session={session} place={place} />}
    </div>
  );
}

function CopyCalls({ run, name }: { run: RunDetail; name: string }) {
  const commands = () => {
    const json = JSON.stringify(run.params ?? {});
    return commandsOf({ baseUrl: baseUrl(), id: run.functionId, name, json });
  };
  return (
    <>
      <button type="button" class="plain" onClick={() => void copy(commands().curl)}>
        Copy as curl
      </button>
      <button type="button" class="plain" onClick={() => void copy(commands().cli)}>
        Copy as CLI
      </button>
    </>
  );
}
