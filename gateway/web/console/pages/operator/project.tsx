/** One project: its limits, which the operator sets, its usage, and its API keys. */
import { useState } from 'preact/hooks';
import { send, sentenceOf } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { operatorPath, pathOf } from '../../data/route.ts';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { Foreign, Id } from '../../parts/text.tsx';
import { Keys } from './keys.tsx';
import type { LimitName, OperatedProject, Storage } from './types.ts';

const PROJECTS = '/console/api/v1/operator/projects';
/** `usage`: what of the project counts against it. */
const LIMITS: readonly [
  name: LimitName,
  title: string,
  unit: string,
  usage: 'sessions' | 'invocations' | 'queued' | keyof Storage,
][] = [
  ['sessions', 'Sessions at once', '', 'sessions'],
  ['invocations', 'Runs at once', '', 'invocations'],
  ['queue', 'Waiting runs and builds', '', 'queued'],
  ['contexts', 'Contexts', '', 'contexts'],
  ['contextMib', 'Contexts', 'MiB', 'contextBytes'],
  ['downloadMib', 'Downloads', 'MiB', 'downloadBytes'],
  ['recordingMib', 'Recordings', 'MiB', 'recordingBytes'],
  ['uploadMib', 'Archives and extensions', 'MiB', 'uploadBytes'],
  ['logMib', 'Logs and results', 'MiB', 'logBytes'],
];

export function OperatorProjectPage({ id }: { id: string }) {
  const { value, error, again } = useLoad<{ projects: OperatedProject[] }>(PROJECTS, ['OPERATOR']);
  if (value === undefined) {
    return error === undefined ? (
      <p class="hint">Reading…</p>
    ) : (
      <Failure error={error} again={again} />
    );
  }
  const found = value.projects.find(({ project }) => project.id === id);
  if (found === undefined) {
    return (
      <Empty title="There is no project with this id.">
        <p>
          <a href={operatorPath()}>All projects</a>
        </p>
      </Empty>
    );
  }
  return (
    <>
      <div class="head">
        <h1>
          <Foreign text={found.project.name} max={80} />
        </h1>
        <Id value={id} />
        <a href={pathOf(id)}>Open its pages</a>
      </div>
      <LimitsForm operated={found} changed={again} />
      <Keys projectId={id} />
    </>
  );
}

function LimitsForm({ operated, changed }: { operated: OperatedProject; changed: () => void }) {
  const [error, setError] = useState<string>();
  const { id } = operated.project;
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const limits = Object.fromEntries(
      LIMITS.map(([name]) => [name, Number(data.get(name))] as const).filter(
        ([name, limit]) => limit !== operated.limits[name],
      ),
    );
    try {
      await send('PATCH', `${PROJECTS}/${id}`, { limits });
      setError(undefined);
      announce('The limits are set.');
      changed();
    } catch (reason) {
      setError(sentenceOf(reason));
    }
  };
  return (
    <form class="limits" onSubmit={submit} noValidate>
      <h2>Limits and usage</h2>
      <table aria-label="Limits">
        <thead>
          <tr>
            <th scope="col">Of</th>
            <th scope="col">Used</th>
            <th scope="col">Limit</th>
          </tr>
        </thead>
        <tbody>
          {LIMITS.map(([name, title, unit, usage]) => (
            <tr key={name}>
              <td>
                <label for={`limit-${name}`}>{unit === '' ? title : `${title}, ${unit}`}</label>
              </td>
              <td>{usedText(operated, usage)}</td>
              <td>
                <input
                  id={`limit-${name}`}
                  name={name}
                  type="number"
                  min={1}
                  key={operated.limits[name]}
                  defaultValue={String(operated.limits[name])}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {error !== undefined && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <p class="operator-buttons">
        <button type="submit" class="main">
          Set limits
        </button>
        <span class="hint">Running work is not affected.</span>
      </p>
    </form>
  );
}

function usedText(operated: OperatedProject, usage: (typeof LIMITS)[number][3]): string {
  if (usage === 'sessions' || usage === 'invocations' || usage === 'queued') {
    return String(operated[usage]);
  }
  const { used } = operated.storage[usage];
  return usage === 'contexts' ? String(used) : bytesText(used);
}
