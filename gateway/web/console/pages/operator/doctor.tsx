/** The checks of `tabern doctor` that a running service can make of itself. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { Failure } from '../../parts/load.tsx';
import { State, type StateName } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Command, Foreign } from '../../parts/text.tsx';
import type { Finding } from './types.ts';

const LEVELS: Record<Finding['level'], [StateName, string]> = {
  ok: ['done', 'Fit'],
  warn: ['waiting', 'Warning'],
  fail: ['failed', 'Failed'],
};
const COLUMNS: Column<Finding>[] = [
  {
    name: 'Result',
    cell: ({ level }) => <State name={LEVELS[level][0]} word={LEVELS[level][1]} />,
  },
  { name: 'Check', cell: ({ check }) => check },
  {
    name: 'Finding',
    kind: 'wide',
    cell: ({ says, fix }) => (
      <>
        <Foreign text={says} max={300} />
        {fix !== undefined && (
          <p class="hint">
            <Foreign text={fix} max={300} />
          </p>
        )}
      </>
    ),
  },
];

export function DoctorPage() {
  const [found, setFound] = useState<Finding[]>();
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const check = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const path = '/console/api/v1/operator/diagnosis';
      setFound((await api<{ findings: Finding[] }>(path)).findings);
    } catch (reason) {
      setError(sentenceOf(reason));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div class="head">
        <h1>Doctor</h1>
        <button type="button" class="main" disabled={isBusy} onClick={() => void check()}>
          {isBusy ? 'Checking…' : 'Check now'}
        </button>
      </div>
      <p class="hint">
        Checks the running service, and its database, files, keys and disk, in a process of its own.
        The machine and the settings of the other roles are checked by the command:
      </p>
      <Command text="tabern doctor" />
      {error !== undefined && <Failure error={error} again={() => void check()} />}
      {found !== undefined && (
        <Table
          label="Findings"
          rows={found}
          columns={COLUMNS}
          keyOf={({ check: name }) => name}
          hrefOf={() => undefined}
        />
      )}
    </>
  );
}
