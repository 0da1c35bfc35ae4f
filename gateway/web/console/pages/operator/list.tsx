/** A page with one list that is read whole, again each 10 s, and by a button. */
import type { ComponentChildren } from 'preact';
import { Failure, useLoad } from '../../parts/load.tsx';
import { type Column, Table } from '../../parts/table.tsx';

/** Changes of the operator's lists are not reported: they are read again when all is. */
const KINDS = ['OPERATOR'];

type Props<Answer, Row> = {
  title: string;
  path: string;
  rowsOf(answer: Answer): readonly Row[];
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  hrefOf?(row: Row): string;
  empty: ComponentChildren;
  /** Beside the title. */
  children?: ComponentChildren;
};

export function OperatorList<Answer, Row>(props: Props<Answer, Row>) {
  const { title, path, rowsOf, columns, keyOf, hrefOf = () => undefined, empty, children } = props;
  const { value, error, again } = useLoad<Answer>(path, KINDS);
  const rows = value === undefined ? [] : rowsOf(value);
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {children}
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value !== undefined && rows.length === 0 && empty}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Rows">
          <Table label={title} rows={rows} columns={columns} keyOf={keyOf} hrefOf={hrefOf} />
        </section>
      )}
    </>
  );
}
