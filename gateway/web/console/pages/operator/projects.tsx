/** All projects with what they use of their limits; a new one is made here. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { operatorPath, pathOf } from '../../data/route.ts';
import { go } from '../../data/router.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/load.tsx';
import type { Column } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { OperatorList } from './list.tsx';
import type { OperatedProject, Storage } from './types.ts';

const PROJECTS = '/console/api/v1/operator/projects';

export function ProjectsPage() {
  const [isMaking, setMaking] = useState(false);
  return (
    <OperatorList<{ projects: OperatedProject[] }, OperatedProject>
      title="Projects"
      path={PROJECTS}
      rowsOf={({ projects }) => projects}
      columns={COLUMNS}
      keyOf={({ project }) => project.id}
      hrefOf={({ project }) => operatorPath('projects', project.id)}
      empty={<Empty title="There is no project." />}
    >
      <button type="button" onClick={() => setMaking(true)}>
        New project
      </button>
      {isMaking && <NewProject close={() => setMaking(false)} />}
    </OperatorList>
  );
}

const COLUMNS: Column<OperatedProject>[] = [
  {
    name: 'Project',
    kind: 'wide',
    cell: ({ project }) => <Foreign text={project.name} max={80} />,
  },
  { name: 'Id', cell: ({ project }) => <Id value={project.id} /> },
  {
    name: 'Sessions',
    cell: ({ sessions, limits }) => <Of used={sessions} limit={limits.sessions} />,
  },
  {
    name: 'Runs',
    cell: ({ invocations, limits }) => <Of used={invocations} limit={limits.invocations} />,
  },
  { name: 'Waiting', cell: ({ queued, limits }) => <Of used={queued} limit={limits.queue} /> },
  { name: 'Browser minutes', cell: ({ browserMinutes }) => browserMinutes },
  { name: 'Stored', cell: ({ storage }) => bytesText(storedBytes(storage)) },
  { name: 'Created', kind: 'late', cell: ({ project }) => <Time at={project.createdAt} /> },
  { name: 'Pages', cell: ({ project }) => <a href={pathOf(project.id)}>open</a> },
];

export function Of({ used, limit }: { used: number; limit: number }) {
  return (
    <span class={used >= limit ? 'full' : undefined}>
      {used} <span class="none">of {limit}</span>
      {used >= limit && <span class="hidden"> (full)</span>}
    </span>
  );
}

function storedBytes({ contexts: _, ...bytes }: Storage): number {
  return Object.values(bytes).reduce((sum, { used }) => sum + used, 0);
}

function NewProject({ close }: { close: () => void }) {
  const [error, setError] = useState<string>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    try {
      const made = await api<OperatedProject>(PROJECTS, { name: String(data.get('name')) });
      close();
      go(operatorPath('projects', made.project.id));
    } catch (reason) {
      setError(sentenceOf(reason));
    }
  };
  return (
    <Dialog label="New project" close={close}>
      <form class="operator-form" onSubmit={submit}>
        <h2>New project</h2>
        <label>
          <span>Name</span>
          <input name="name" maxLength={128} autocomplete="off" required ref={focused} />
        </label>
        {error !== undefined && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <p class="operator-buttons">
          <button type="submit" class="main">
            Create
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function focused(element: HTMLInputElement | null): void {
  element?.focus();
}
