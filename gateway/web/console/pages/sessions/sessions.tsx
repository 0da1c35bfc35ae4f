/** The sessions of the project. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Session } from '../../data/types.ts';
import { FirstSession } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { announce } from '../../parts/notice.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { Table } from '../../parts/table.tsx';
import { useColumns } from './choose-columns.tsx';
import { columnsOf, HIDDEN_AT_FIRST } from './columns.tsx';
import { FILTERS, SessionFilters, useSessionQuery } from './filters.tsx';
import { useRunning } from './running.ts';

export function SessionsPage() {
  const { projectId, query } = route.value;
  const list = usePagedList<Session>(
    {
      path: '/console/api/v1/sessions',
      query: useSessionQuery(),
      kind: 'SESSIONS',
      rowsOf: (answer) => answer['sessions'] as Session[],
    },
    () => scrollY > 100,
  );
  useRunning(list.rows);
  const { chosen, release } = useChosen(list.rows);
  const columns = useColumns('sessions', columnsOf(projectId), HIDDEN_AT_FIRST);
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <ListPage
      title="Sessions"
      list={list}
      empty={isFiltered ? undefined : <FirstSession />}
      filters={<SessionFilters />}
      action={
        <>
          <Release ids={[...chosen.ids]} release={release} />
          <span class="space" />
          {columns.button}
        </>
      }
    >
      <Table
        label="Sessions"
        rows={list.rows}
        columns={columns.shown}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(projectId, 'sessions', id)}
        chosen={chosen}
        keys={(row) => [
          {
            keys: 'r',
            does: 'release the chosen sessions or the row',
            run: () => release(chosen.ids.size > 0 ? [...chosen.ids] : [row.id]),
          },
        ]}
      />
    </ListPage>
  );
}

type ReleaseProps = { ids: string[]; release(ids: string[]): void };

function Release({ ids, release }: ReleaseProps) {
  if (ids.length === 0) return null;
  return (
    <button type="button" class="danger" onClick={() => release(ids)}>
      Release {ids.length} chosen
    </button>
  );
}

export function isOpen({ status, isReleased }: Session): boolean {
  return (status === 'PENDING' || status === 'RUNNING') && !isReleased;
}

function useChosen(rows: readonly Session[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const open = new Set(rows.filter(isOpen).map(({ id }) => id));
  const toggle = (id: string) =>
    setIds((old) => {
      const others = [...old].filter((one) => one !== id);
      return new Set(old.has(id) ? others : [...others, id]);
    });
  const release = async (wanted: string[]) => {
    setIds(new Set());
    await releaseAll(wanted);
  };
  const chosen = { ids: new Set([...ids].filter((id) => open.has(id))), toggle, isFree: isOpen };
  return { chosen, release: (wanted: string[]) => void release(wanted) };
}

/** Requests the end of the sessions, one after another, and says how many were. */
export async function releaseAll(ids: readonly string[]): Promise<void> {
  let released = 0;
  for (const id of ids) {
    try {
      await api(`/v1/sessions/${id}`, { status: 'REQUEST_RELEASE' });
      released += 1;
    } catch (error) {
      announce(sentenceOf(error));
      return;
    }
  }
  announce(released === 1 ? 'The session is released.' : `${released} sessions are released.`);
}
