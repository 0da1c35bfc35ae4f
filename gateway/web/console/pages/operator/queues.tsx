/** The queues of all projects in which work waits or runs, with the key of their fairness. */

import { operatorPath } from '../../data/route.ts';
import { Empty } from '../../parts/load.tsx';
import type { Column } from '../../parts/table.tsx';
import { Foreign } from '../../parts/text.tsx';
import { OperatorList } from './list.tsx';
import { Of } from './projects.tsx';
import type { Queue } from './types.ts';

const WORDS: Record<string, string> = { invocation: 'Runs', build: 'Builds', session: 'Sessions' };

export function QueuesPage() {
  return (
    <>
      <OperatorList<{ queues: Queue[] }, Queue>
        title="Queues"
        path="/console/api/v1/operator/queues"
        rowsOf={({ queues }) => queues}
        columns={COLUMNS}
        keyOf={({ kind, projectId }) => `${kind} ${projectId}`}
        hrefOf={({ projectId }) => operatorPath('projects', projectId)}
        empty={<Empty title="Nothing waits, and nothing runs." />}
      />
      <p class="hint">
        Among the projects in which work of a kind waits, the one with the smallest turn is served
        next, and its turn grows by one.
      </p>
    </>
  );
}

const COLUMNS: Column<Queue>[] = [
  { name: 'Project', cell: ({ projectName }) => <Foreign text={projectName} max={60} /> },
  { name: 'Work', cell: ({ kind }) => WORDS[kind] ?? kind },
  { name: 'Waiting', cell: ({ waiting }) => waiting },
  { name: 'Running', cell: ({ running, limit }) => <Of used={running} limit={limit} /> },
  { name: 'Turn (vtime)', kind: 'wide', cell: ({ vtime }) => vtime },
];
