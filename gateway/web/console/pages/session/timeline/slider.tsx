/** The lanes as a slider of time: a click seeks, a drag chooses a range. */
import { useComputed } from '@preact/signals';
import type { ComponentChildren, TargetedPointerEvent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { lengthText } from '../../../data/format.ts';
import { type Fold, placeOf, type Range, timeAt } from '../../../data/log/fold.ts';
import { seek, shown, wanted } from '../../../data/playhead.ts';
import type { Session } from '../../../data/types.ts';
import { rangeOf, setRange, startOf } from '../clock.ts';
import { Notches } from './lanes.tsx';

const STEP_MS = 5_000;
const SMALL_STEP_MS = 1_000;
/** In pixels. Ours: a shorter movement is a click. */
const DRAG_MIN = 4;

type Props = { session: Session; fold: Fold; rows: number; children: ComponentChildren };

export function Slider({ session, fold, rows, children }: Props) {
  const start = startOf(session);
  const [from, to] = [fold[0]?.from ?? 0, fold.at(-1)?.to ?? 0];
  // of whole seconds: the element changes once a second
  const second = useComputed(() =>
    Math.round(((shown.value ?? wanted.value?.at ?? from) - from) / 1_000),
  );
  const move = (ms: number, page?: number) => seek(Math.min(to, Math.max(from, ms)), page);
  const { drag, ...pointer } = useDrag(fold, {
    clicked: move,
    dragged: (range) => setRange(session, range),
  });
  const key = (event: KeyboardEvent) => {
    const step = event.shiftKey ? SMALL_STEP_MS : STEP_MS;
    const at = shown.peek() ?? wanted.peek()?.at ?? to;
    const next: Record<string, number> = {
      ArrowLeft: at - step,
      ArrowRight: at + step,
      Home: from,
      End: to,
    };
    const ms = Object.hasOwn(next, event.key) ? next[event.key] : undefined;
    if (ms === undefined) return;
    event.preventDefault();
    move(ms);
  };
  return (
    <div
      class="lanes"
      style={{ gridRow: `1 / span ${rows}` }}
      role="slider"
      tabIndex={0}
      aria-label="Time"
      aria-valuemin={0}
      aria-valuemax={Math.round((to - from) / 1_000)}
      aria-valuenow={Math.min(Math.round((to - from) / 1_000), Math.max(0, second.value))}
      aria-valuetext={lengthText(second.value * 1_000 + from - start, true)}
      onKeyDown={key}
      {...pointer}
    >
      {children}
      <Notches fold={fold} />
      <Shade fold={fold} range={drag ?? rangeOf(session)} />
      <Playhead fold={fold} />
    </div>
  );
}

type Acts = { clicked(at: number, page?: number): void; dragged(range: Range): void };
type Press = { x: number; page: number | undefined };
type Pointer = TargetedPointerEvent<HTMLDivElement>;

/** What a pointer does: `drag` is the range while it is chosen. */
function useDrag(fold: Fold, { clicked, dragged }: Acts) {
  const [drag, setDrag] = useState<Range>();
  const press = useRef<Press>(undefined);
  const end = (): void => {
    press.current = undefined;
    setDrag(undefined);
  };
  return {
    drag,
    onPointerDown(event: Pointer) {
      if (event.button !== 0) return;
      const { currentTarget, target, clientX, pointerId } = event;
      const part = target instanceof Element ? target.closest('[data-page]') : null;
      const page = part?.getAttribute('data-page');
      press.current = {
        x: clientX,
        page: page === undefined || page === null ? undefined : Number(page),
      };
      currentTarget.setPointerCapture(pointerId);
    },
    onPointerMove({ currentTarget, clientX }: Pointer) {
      const begun = press.current;
      if (begun === undefined) return;
      if (drag === undefined && Math.abs(clientX - begun.x) < DRAG_MIN) return;
      const [one, other] = [begun.x, clientX].map((x) => timeAt(fold, shareOf(currentTarget, x)));
      if (one === undefined || other === undefined) return;
      setDrag({ from: Math.min(one, other), to: Math.max(one, other) });
    },
    onPointerUp({ currentTarget, clientX }: Pointer) {
      const begun = press.current;
      end();
      if (drag !== undefined) dragged(drag);
      else if (begun) clicked(timeAt(fold, shareOf(currentTarget, clientX)), begun.page);
    },
    onPointerCancel: end,
  };
}

function shareOf(element: Element, x: number): number {
  const { left, width } = element.getBoundingClientRect();
  return (x - left) / Math.max(1, width);
}

function Shade({ fold, range }: { fold: Fold; range: Range | undefined }) {
  if (range === undefined) return null;
  const [left, right] = [placeOf(fold, range.from), placeOf(fold, range.to)];
  return (
    <span class="shade" style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%` }} />
  );
}

/** Moves with the picture, alone. */
function Playhead({ fold }: { fold: Fold }) {
  const at = shown.value ?? wanted.value?.at;
  if (at === undefined) return null;
  return <span class="playhead" style={{ left: `${100 * placeOf(fold, at)}%` }} />;
}
