/** Which columns of a table are shown. The first one is always: it has the link of the row. */
import { useState } from 'preact/hooks';
import { hiddenColumns, hideColumns } from '../../data/preferences.ts';
import { Dialog } from '../../parts/dialog.tsx';
import type { Column } from '../../parts/table.tsx';

/** The shown ones, and a button that changes them. `hidden`: at first. */
export function useColumns<T>(
  list: string,
  columns: readonly Column<T>[],
  hidden: readonly string[],
) {
  const names = hiddenColumns(list, hidden).value;
  const [, ...free] = columns.map(({ name }) => name);
  const toggle = (name: string) => {
    const others = names.filter((one) => one !== name);
    hideColumns(list, names.includes(name) ? others : [...others, name]);
  };
  return {
    shown: columns.filter(({ name }, index) => index === 0 || !names.includes(name)),
    isShown: (name: string) => !names.includes(name),
    button: (
      <ColumnsButton
        free={free}
        hidden={names}
        toggle={toggle}
        again={() => hideColumns(list, hidden)}
      />
    ),
  };
}

type Props = {
  free: readonly string[];
  hidden: readonly string[];
  toggle(name: string): void;
  again(): void;
};

function ColumnsButton({ free, hidden, toggle, again }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="plain" onClick={() => setOpen(true)}>
        Columns
      </button>
      {isOpen && (
        <Dialog label="Columns" close={() => setOpen(false)}>
          <h2>Columns of this list, in this browser</h2>
          <ul class="columns">
            {free.map((name) => (
              <li key={name}>
                <label>
                  <input
                    type="checkbox"
                    checked={!hidden.includes(name)}
                    onChange={() => toggle(name)}
                  />
                  {name}
                </label>
              </li>
            ))}
          </ul>
          <div class="buttons">
            <button type="button" class="plain" onClick={again}>
              As at first
            </button>
            <button type="button" class="main" onClick={() => setOpen(false)}>
              Done
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
