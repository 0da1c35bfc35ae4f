/** What a timeline shows besides the log: pages, people, and the steps of a run. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { now } from '../../../data/clock.ts';
import type { Range } from '../../../data/log/fold.ts';
import type { LogTimeline } from '../../../data/log/messages.ts';
import { inRows, pageSpans, type Span } from '../../../data/log/spans.ts';
import { sharedToken } from '../../../data/share.ts';
import type { Run, RunStep, Session, SessionEvent } from '../../../data/types.ts';
import { useAgain, useLoad } from '../../../parts/load.tsx';
import { canWatch } from '../clock.ts';

/** Events of people, and what they did. */
const PEOPLE: Record<string, string> = { handoff: 'asked for a person', takeover: 'took over' };

export type StepSpan = Range & { name: string; failed: boolean };
export type Course = { pages: Span[]; people: Span[]; steps: StepSpan[] };

/** `hands`: when this browser had the mouse. */
export function useCourse(
  session: Session,
  timeline: LogTimeline | undefined,
  hands: readonly Range[],
): Course {
  // a link to one session does not include its events
  const path = sharedToken() === '' ? `/console/api/v1/sessions/${session.id}/events` : '';
  const { value, again } = useLoad<{ events: SessionEvent[] }>(path, ['SESSIONS'], session.id);
  useAgain(again, canWatch(session));
  const steps = useSteps(session);
  return useMemo(() => {
    if (timeline === undefined) return { pages: [], people: [], steps };
    const events = value?.events ?? [];
    return {
      pages: pageSpans(events, timeline.pages, timeline.range),
      people: inRows([...hands.map(handOf), ...peopleOf(events, timeline.range)]),
      steps,
    };
  }, [timeline, value, hands, steps]);
}

/** The times in which this browser had the mouse; the last one grows. */
export function useHands(isMine: boolean): readonly Range[] {
  const [hands, setHands] = useState<readonly Range[]>([]);
  useEffect(() => {
    if (!isMine) return;
    const from = now.peek();
    setHands((old) => [...old, { from, to: Number.POSITIVE_INFINITY }]);
    return () => {
      const to = now.peek();
      setHands((old) => old.map((one) => (one.from === from ? { from, to } : one)));
    };
  }, [isMine]);
  return hands;
}

function handOf({ from, to }: Range): Omit<Span, 'row'> {
  return { name: 'you', text: 'you had the mouse', from, to };
}

function peopleOf(events: readonly SessionEvent[], { to: end }: Range): Omit<Span, 'row'>[] {
  return events.flatMap(({ type, at, endedAt, text = '' }) => {
    const what = Object.hasOwn(PEOPLE, type) ? PEOPLE[type] : undefined;
    if (what === undefined) return [];
    const to = endedAt === undefined ? end : Date.parse(endedAt);
    return [{ name: what, text: `${what} ${text}`.trim(), from: Date.parse(at), to }];
  });
}

/** A run's steps are known once it has ended. */
function useSteps({ invocationId, endedAt }: Session): StepSpan[] {
  const isRun = invocationId !== undefined && endedAt !== undefined;
  const path = isRun ? `/console/api/v1/invocations/${invocationId}` : '';
  const { value: run } = useLoad<Run>(path);
  const { value } = useLoad<{ steps: RunStep[] }>(path === '' ? '' : `${path}/steps`);
  return useMemo(() => {
    if (run?.startedAt === undefined) return [];
    const base = Date.parse(run.startedAt);
    return (value?.steps ?? []).map(({ name, startMs, endMs, failed }) => {
      return { name, failed, from: base + startMs, to: base + endMs };
    });
  }, [run, value]);
}
