/** A table of objects: rows are moved through by keys, opened, chosen and copied. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { go } from '../data/router.ts';
import { type Key, useKeys } from './keys.tsx';
import { copy } from './text.tsx';

export type Column<T> = {
  name: string;
  /** `wide` takes the space that is left; `late` is left out on a narrow screen. */
  kind?: 'wide' | 'late';
  cell(row: T): ComponentChildren;
};
type Props<T> = {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  /** Identifies a row. */
  keyOf(row: T): string;
  /** The address of a row's page; undefined when it has none. */
  hrefOf(row: T): string | undefined;
  /** Rows that may be chosen, and what is chosen. */
  chosen?: { ids: ReadonlySet<string>; toggle(id: string): void; isFree(row: T): boolean };
  /** The row whose page is shown. */
  shown?: string | undefined;
  /** More keys, of the current row. */
  keys?(row: T): Key[];
};

/** Ours: more than a tall screen shows. */
const FIRST_ROWS = 20;

export function Table<T>(props: Props<T>) {
  const { label, columns, chosen } = props;
  const rows = useFirstRows(props.rows);
  const [current, setCurrent] = useCurrent(props);
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {chosen && (
            <th class="narrow" scope="col">
              <span class="hidden">Chosen</span>
            </th>
          )}
          {columns.map(({ name, kind }) => (
            <th key={name} class={kind} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const id = props.keyOf(row);
          return (
            <TableRow
              key={id}
              row={row}
              table={props}
              isCurrent={id === current}
              onFocus={() => setCurrent(id)}
            />
          );
        })}
      </tbody>
    </table>
  );
}

/** What is seen at once is drawn before the rest: drawing rows is half of the time of a page. */
function useFirstRows<T>(rows: readonly T[]): readonly T[] {
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    // after the frame with the first rows
    const frame = requestAnimationFrame(() => setTimeout(() => setWhole(true)));
    return () => cancelAnimationFrame(frame);
  }, []);
  return isWhole ? rows : rows.slice(0, FIRST_ROWS);
}

type RowProps<T> = { row: T; table: Props<T>; isCurrent: boolean; onFocus(): void };

function TableRow<T>({ row, table, isCurrent, onFocus }: RowProps<T>) {
  const { columns, chosen, keyOf, hrefOf, shown } = table;
  const id = keyOf(row);
  const href = hrefOf(row);
  return (
    <tr
      data-id={id}
      data-current={isCurrent}
      data-chosen={chosen?.ids.has(id) || id === shown}
      aria-current={id === shown ? 'true' : undefined}
      onFocusCapture={onFocus}
    >
      {chosen && (
        <td class="narrow">
          <input
            type="checkbox"
            aria-label={`Choose ${id}`}
            checked={chosen.ids.has(id)}
            disabled={!chosen.isFree(row)}
            onChange={() => chosen.toggle(id)}
          />
        </td>
      )}
      {columns.map(({ name, kind, cell }, index) => (
        <td key={name} class={kind}>
          {index === 0 && href !== undefined ? (
            <a class="row-link" href={href}>
              {cell(row)}
            </a>
          ) : (
            cell(row)
          )}
        </td>
      ))}
    </tr>
  );
}

/** The row that keys act on, and its keys. */
function useCurrent<T>(props: Props<T>): [string, (id: string) => void] {
  const { rows, keyOf, hrefOf, chosen } = props;
  const [current, setCurrent] = useState('');
  const index = rows.findIndex((row) => keyOf(row) === current);
  const row = rows[index];
  const move = (step: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, index + step))];
    if (next !== undefined) setCurrent(keyOf(next));
  };
  const withRow = (act: (row: T) => void) => () => {
    if (row !== undefined) act(row);
  };
  useEffect(() => {
    if (current === '') return;
    const element = document.querySelector(`tr[data-id="${CSS.escape(current)}"]`);
    element?.scrollIntoView({ block: 'nearest' });
    element?.querySelector('a')?.focus({ preventScroll: true });
  }, [current]);
  const open = withRow((one) => {
    const href = hrefOf(one);
    if (href !== undefined) go(href);
  });
  const toggle = withRow((one) => {
    if (chosen?.isFree(one)) chosen.toggle(keyOf(one));
  });
  useKeys([
    { keys: 'j or ArrowDown', does: 'next row', run: () => move(1) },
    { keys: 'k or ArrowUp', does: 'previous row', run: () => move(-1) },
    { keys: 'Enter', does: 'open the row', run: open },
    { keys: 'c', does: "copy the row's id", run: withRow((one) => void copy(keyOf(one))) },
    ...(chosen ? [{ keys: 'x', does: 'choose the row', run: toggle }] : []),
    ...(props.keys && row !== undefined ? props.keys(row) : []),
  ]);
  return [current, setCurrent];
}
