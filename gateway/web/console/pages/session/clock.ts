/** The clock of a session's page: seconds since its start, and the address of a moment. */
import { effect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { now } from '../../data/clock.ts';
import { offsetText } from '../../data/format.ts';
import type { Range } from '../../data/log/fold.ts';
import { seek, seekNowhere, shown, wanted } from '../../data/playhead.ts';
import { route, setQuery } from '../../data/router.ts';
import type { Session } from '../../data/types.ts';
import { copy } from '../../parts/text.tsx';

export function startOf({ startedAt, createdAt }: Session): number {
  return Date.parse(startedAt ?? createdAt);
}

/** Whether the session has a live picture. */
export function canWatch({ status, isReleased }: Session): boolean {
  return status === 'RUNNING' && !isReleased;
}

/** The time of a parameter with seconds since the start, such as `t`; undefined for any other. */
export function timeOf(session: Session, text: string | null): number | undefined {
  if (text === null || !/^\d{1,7}(?:\.\d{1,3})?$/.test(text)) return undefined;
  return startOf(session) + Number(text) * 1_000;
}

/** The range of time in the address, to which the lists are limited. */
export function rangeOf(session: Session): Range | undefined {
  const { query } = route.value;
  const from = timeOf(session, query.get('from'));
  const to = timeOf(session, query.get('to'));
  return from === undefined || to === undefined || to < from ? undefined : { from, to };
}

/** Limits the lists; undefined shows all. */
export function setRange(session: Session, range: Range | undefined): void {
  const text = (ms: number) => offsetText(Math.max(0, ms - startOf(session)));
  const [from, to] = range === undefined ? [] : [text(range.from), text(range.to)];
  setQuery({ from, to }, true);
}

/** Seeks the moment of the address, and keeps the sought one in it. */
export function useMoment(session: Session): void {
  const start = startOf(session);
  useEffect(() => {
    const { query } = route.peek();
    const at = timeOf(session, query.get('t'));
    const page = query.get('page');
    if (at !== undefined) seek(at, page === null ? undefined : Number(page));
    const stop = effect(() => {
      const target = wanted.value;
      setQuery({ t: target && offsetText(Math.max(0, target.at - start)) });
    });
    return () => {
      stop();
      seekNowhere();
    };
  }, [start]);
}

/** Copies the address with the moment that is shown; of a live picture, with the current one. */
export async function copyMoment(session: Session): Promise<void> {
  const live = canWatch(session) ? now.peek() : undefined;
  const at = shown.peek() ?? wanted.peek()?.at ?? live;
  const url = new URL(location.href);
  if (at !== undefined) url.searchParams.set('t', offsetText(Math.max(0, at - startOf(session))));
  await copy(url.href);
}
