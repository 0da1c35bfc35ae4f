/** A page that is one list: filters, what waits, the rows, the next page. */
import type { ComponentChildren } from 'preact';
import { Empty, Failure } from './load.tsx';
import type { PagedList } from './paged-list.tsx';

type Props = {
  title: string;
  list: PagedList<unknown>;
  /** Shown in place of an empty list without filters. */
  empty: ComponentChildren;
  filters: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
};

export function ListPage({ title, list, empty, filters, action, children }: Props) {
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {action}
      </div>
      {filters}
      {list.waiting > 0 && (
        <button type="button" class="waiting-rows" onClick={() => show(list)}>
          {list.waiting} new
        </button>
      )}
      {list.error !== undefined && <Failure error={list.error} again={list.again} />}
      <Rows list={list} empty={empty}>
        {children}
      </Rows>
    </>
  );
}

type RowsProps = Pick<Props, 'list' | 'empty' | 'children'>;

function Rows({ list, empty, children }: RowsProps) {
  if (list.rows.length > 0) {
    return (
      <>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys */}
        <section class="scroll" tabIndex={0} aria-label="Rows">
          {children}
        </section>
        {list.hasMore && (
          <button type="button" class="more" onClick={list.more}>
            Show more
          </button>
        )}
      </>
    );
  }
  if (!list.isLoaded) return <p class="hint">Reading…</p>;
  if (list.error !== undefined) return null;
  return empty ?? <Empty title="Nothing matches these filters." />;
}

function show(list: PagedList<unknown>): void {
  list.showWaiting();
  scrollTo(0, 0);
}
