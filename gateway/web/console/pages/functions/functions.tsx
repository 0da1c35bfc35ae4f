/** The functions of the project. */
import { withQuery } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Fn } from '../../data/types.ts';
import { Filters, Type } from '../../parts/filters.tsx';
import { FirstFunction } from '../../parts/first.tsx';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';

const COLUMNS: Column<Fn>[] = [
  { name: 'Name', kind: 'wide', cell: ({ name }) => <Foreign text={name} max={80} /> },
  { name: 'Function', cell: ({ id }) => <Id value={id} /> },
  { name: 'Published', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
  { name: 'First published', kind: 'late', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function FunctionsPage() {
  const { projectId, query } = route.value;
  const { value, error, again } = useLoad<{ data: Fn[] }>('/v1/functions', ['FUNCTIONS', 'BUILDS']);
  const text = (query.get('text') ?? '').toLowerCase();
  const rows = (value?.data ?? []).filter(({ id, name }) => {
    return id.includes(text) || name.toLowerCase().includes(text);
  });
  return (
    <>
      <div class="head">
        <h1>Functions</h1>
      </div>
      <Filters names={['text']}>
        <Type name="text" label="Text" placeholder="name or id" />
      </Filters>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value?.data.length === 0 && <FirstFunction />}
      {value !== undefined && value.data.length > 0 && rows.length === 0 && (
        <Empty title="Nothing matches these filters." />
      )}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows">
          <Table
            label="Functions"
            rows={rows}
            columns={COLUMNS}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => withQuery(pathOf(projectId, 'runs'), { functionId: id })}
          />
        </section>
      )}
    </>
  );
}
