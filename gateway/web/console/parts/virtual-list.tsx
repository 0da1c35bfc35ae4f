/** A list of which only the rows in view are drawn; it is one stop of the Tab key. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isAtEnd, scrolledTo, type Window, windowOf } from '../data/window.ts';

export const ROW_HEIGHT = 24;

type Props = {
  label: string;
  count: number;
  /** The row of the selection; -1 without one. */
  selected: number;
  /** The row at the time of the picture, which is kept in view; -1 without one. */
  near?: number;
  onSelect(row: number): void;
  /** The content of a row; undefined until it is read. */
  render(row: number): ComponentChildren | undefined;
  /** Called when other rows come into view. */
  onWindow?(window: Window): void;
};

export function VirtualList(props: Props) {
  const { label, count, selected, near = -1, onSelect, render, onWindow } = props;
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  const scroll = { ...place, rowHeight: ROW_HEIGHT, count };
  const { from, to } = windowOf(scroll);

  useLayoutEffect(() => onWindow?.({ from, to }), [from, to, onWindow]);
  useFollow(box, count);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setPlace({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useInView(box, selected, count);
  useInView(box, near, count);

  const rows = Array.from({ length: to - from }, (_, index) => from + index);
  return (
    <div
      ref={box}
      class="virtual"
      role="listbox"
      aria-label={label}
      aria-activedescendant={selected >= from && selected < to ? `row-${selected}` : undefined}
      tabIndex={0}
      onScroll={({ currentTarget }) =>
        setPlace({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })
      }
      onKeyDown={(event) => {
        const next = moved(event.key, selected, count, Math.floor(place.height / ROW_HEIGHT));
        if (next === undefined) return;
        event.preventDefault();
        onSelect(next);
      }}
    >
      <div class="virtual-all" role="presentation" style={{ height: `${count * ROW_HEIGHT}px` }}>
        {rows.map((row) => (
          <Row
            key={row}
            row={row}
            isSelected={row === selected}
            isNear={row === near}
            onSelect={onSelect}
          >
            {render(row)}
          </Row>
        ))}
      </div>
    </div>
  );
}

type RowProps = {
  row: number;
  isSelected: boolean;
  isNear: boolean;
  onSelect(row: number): void;
  children?: ComponentChildren;
};

function Row({ row, isSelected, isNear, onSelect, children }: RowProps) {
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
    <div
      id={`row-${row}`}
      class="virtual-row"
      role="option"
      aria-selected={isSelected}
      data-near={isNear}
      style={{ transform: `translateY(${row * ROW_HEIGHT}px)` }}
      onClick={() => onSelect(row)}
    >
      {children ?? <span class="none">…</span>}
    </div>
  );
}

/** Scrolls to the row when it becomes another one. */
function useInView(box: { current: HTMLDivElement | null }, row: number, count: number): void {
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || row < 0) return;
    const { scrollTop: top, clientHeight: height } = element;
    element.scrollTop = scrolledTo(row, { top, height, rowHeight: ROW_HEIGHT, count });
  }, [box, row, count]);
}

/** Stays at the end when rows are added there. */
function useFollow(box: { current: HTMLDivElement | null }, count: number): void {
  const before = useRef(count);
  useLayoutEffect(() => {
    const element = box.current;
    const old = before.current;
    before.current = count;
    if (element === null || count <= old || old === 0) return;
    const { scrollTop: top, clientHeight: height } = element;
    if (isAtEnd({ top, height, rowHeight: ROW_HEIGHT, count: old })) {
      element.scrollTop = count * ROW_HEIGHT;
    }
  }, [box, count]);
}

function moved(key: string, selected: number, count: number, page: number): number | undefined {
  if (count === 0) return undefined;
  const steps: Record<string, number> = {
    ArrowDown: selected + 1,
    j: selected + 1,
    ArrowUp: selected - 1,
    k: selected - 1,
    PageDown: selected + page,
    PageUp: selected - page,
    Home: 0,
    End: count - 1,
  };
  const next = Object.hasOwn(steps, key) ? steps[key] : undefined;
  return next === undefined ? undefined : Math.min(count - 1, Math.max(0, next));
}
