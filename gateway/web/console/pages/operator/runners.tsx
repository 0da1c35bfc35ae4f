/** The runners that have reported since core started. */

import { Empty } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import type { Column } from '../../parts/table.tsx';
import { Command, Foreign, Id, Time } from '../../parts/text.tsx';
import { OperatorList } from './list.tsx';
import type { Runner } from './types.ts';

export function RunnersPage() {
  return (
    <OperatorList<{ runners: Runner[] }, Runner>
      title="Runners"
      path="/console/api/v1/operator/runners"
      rowsOf={({ runners }) => runners}
      columns={COLUMNS}
      keyOf={({ id }) => id}
      empty={
        <Empty title="No runner has reported since core started.">
          <Command text="tabern runner" />
        </Empty>
      }
    />
  );
}

const COLUMNS: Column<Runner>[] = [
  { name: 'State', cell: (runner) => <RunnerState runner={runner} /> },
  { name: 'Runner', cell: ({ id }) => <Id value={id} /> },
  { name: 'Last seen', cell: ({ seenAt }) => <Time at={seenAt} /> },
  { name: 'Running', cell: ({ running }) => running },
  { name: 'Sessions', cell: ({ facts }) => facts?.sessions ?? '–' },
  { name: 'Runs', cell: ({ facts }) => facts?.invocations ?? '–' },
  { name: 'Builds', cell: ({ facts }) => facts?.builds ?? '–' },
  { name: 'Spares', cell: ({ browser }) => browser?.spares ?? '–' },
  { name: 'Sandbox', cell: ({ facts }) => facts && <Foreign text={facts.sandbox} max={40} /> },
  { name: 'Version', cell: ({ facts }) => facts && <Foreign text={facts.version} max={40} /> },
  { name: 'Labels', cell: ({ facts }) => <Foreign text={labelsIn(facts)} max={80} /> },
  {
    name: 'Chrome',
    kind: 'wide',
    cell: ({ browser }) => browser && <Foreign text={browser.product} max={80} />,
  },
];

function labelsIn(facts: Runner['facts']): string {
  return (facts?.labels ?? []).map(({ name, value }) => `${name}=${value}`).join(', ');
}

function RunnerState({ runner: { isPresent, isDraining, isBrowserFailing } }: { runner: Runner }) {
  if (!isPresent) return <State name="failed" word="Silent" />;
  if (isDraining) return <State name="waiting" word="Draining" />;
  if (isBrowserFailing) return <State name="failed" word="Chrome does not start" />;
  return <State name="running" word="Present" />;
}
