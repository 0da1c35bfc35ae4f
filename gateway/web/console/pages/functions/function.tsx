/** One function: run it, how to call it, its newest runs, its versions and builds. */
import { useState } from 'preact/hooks';
import { baseUrl, withQuery } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { go, route, setQuery } from '../../data/router.ts';
import type { Run } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { RunState } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Command, copy, Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { type Call, callTexts } from './calls.ts';
import { InvokeForm } from './invoke-form.tsx';
import type { BuildRow, Invoked } from './model/types.ts';
import { Schedules } from './schedules.tsx';
import { Schema } from './schema.tsx';
import { Versions } from './versions.tsx';

const FEW = '10';

export function FunctionPage({ id }: { id: string }) {
  const path = `/console/api/v1/functions/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<Invoked>(path, ['FUNCTIONS', 'BUILDS']);
  useKeys([{ keys: 'c', does: "copy the function's id", run: () => void copy(id) }]);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  const { projectId, query } = route.value;
  const version = query.get('version') ?? undefined;
  return (
    <div class="function">
      <Header invoked={value} />
      <div class="two">
        <section aria-label="Run it">
          <h2>Run it</h2>
          {version !== undefined && (
            <p class="hint">
              Runs version <Id value={version} />{' '}
              <button type="button" class="plain" onClick={() => setQuery({ version: '' }, true)}>
                Run the newest one
              </button>
            </p>
          )}
          <InvokeForm
            functionId={id}
            versionId={version}
            started={(run) => go(pathOf(projectId, 'runs', run))}
          />
        </section>
        <section aria-label="Call it">
          <Calls invoked={value} />
          {value.paramsSchemaJson !== undefined && <Schema json={value.paramsSchemaJson} />}
        </section>
      </div>
      <NewestRuns id={id} />
      <Schedules functionId={id} />
      <Versions functionId={id} />
      <Builds id={id} />
    </div>
  );
}

function Header({ invoked }: { invoked: Invoked }) {
  const { projectId } = route.value;
  return (
    <header class="session-head">
      <h1>
        <Foreign text={invoked.name} max={80} />
      </h1>
      <Id value={invoked.id} />
      <span class="fact">
        published <Time at={invoked.updatedAt} />
      </span>
      <a href={withQuery(pathOf(projectId, 'runs'), { functionId: invoked.id })}>all runs</a>
      <span class="space" />
      <a class="button" href={pathOf(projectId, 'publish')}>
        Publish
      </a>
    </header>
  );
}

const CALLS: readonly [Call, string][] = [
  ['curl', 'curl'],
  ['cli', 'CLI'],
  ['script', 'JavaScript'],
];

function Calls({ invoked }: { invoked: Invoked }) {
  const [shown, setShown] = useState<Call>('curl');
  return (
    <>
      <div class="head">
        <h2>Call it</h2>
        {CALLS.map(([name, word]) => (
          <button
            key={name}
            type="button"
            class="plain"
            aria-pressed={name === shown}
            onClick={() => setShown(name)}
          >
            {word}
          </button>
        ))}
      </div>
      <Command text={callTexts(baseUrl(), invoked)[shown]} />
    </>
  );
}

const RUN_COLUMNS: Column<Run>[] = [
  { name: 'Status', cell: ({ status }) => <RunState status={status} /> },
  { name: 'Run', cell: ({ id }) => <Id value={id} /> },
  { name: 'Accepted', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Length', cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} /> },
  {
    name: 'Cause',
    kind: 'wide',
    cell: ({ causeCode, causeMessage }) =>
      causeCode !== undefined && <Foreign text={`${causeCode}: ${causeMessage ?? ''}`} max={160} />,
  },
];

function NewestRuns({ id }: { id: string }) {
  const { projectId } = route.value;
  const path = withQuery('/console/api/v1/invocations', { functionId: id, limit: FEW });
  const { value, error, again } = useLoad<{ invocations: Run[] }>(path, ['INVOCATIONS']);
  return (
    <section aria-label="Newest runs">
      <h2>Newest runs</h2>
      {error !== undefined && <Failure error={error} again={again} />}
      {value?.invocations.length === 0 && <p class="hint">It has not run yet.</p>}
      {value !== undefined && value.invocations.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows of runs">
          <Table
            label="Newest runs"
            rows={value.invocations}
            columns={RUN_COLUMNS}
            keyOf={(run) => run.id}
            hrefOf={(run) => pathOf(projectId, 'runs', run.id)}
          />
        </section>
      )}
    </section>
  );
}

function Builds({ id }: { id: string }) {
  const { projectId } = route.value;
  const path = withQuery('/console/api/v1/builds', { functionId: id, limit: FEW });
  const { value, error, again } = useLoad<{ builds: BuildRow[] }>(path, ['BUILDS']);
  return (
    <section aria-label="Builds">
      <div class="head">
        <h2>Builds that published it</h2>
        <a href={pathOf(projectId, 'builds')}>all builds</a>
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      <ul class="facts-list">
        {(value?.builds ?? []).map((build) => (
          <li key={build.id}>
            <RunState status={build.status} />
            <a href={pathOf(projectId, 'builds', build.id)}>
              <Foreign text={build.entrypoint} max={80} />
            </a>
            <span class="fact">
              <Time at={build.createdAt} />, <Length from={build.startedAt} to={build.endedAt} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
