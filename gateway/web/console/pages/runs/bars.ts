/** The steps of a run as bars. Pure. */
import type { RunDetail, RunStep } from '../../data/types.ts';

const STEPS: Record<string, string> = {
  bundle: 'bundle loaded',
  'context load': 'context loaded',
  browser: 'browser started',
  handler: 'handler',
  'context save': 'context saved',
  close: 'session closed',
};
export type Bar = {
  name: string;
  state: 'running' | 'failed' | 'waiting';
  from: number;
  to: number;
};
export type Timed = Pick<RunDetail, 'status' | 'createdAt' | 'startedAt' | 'endedAt'>;

/** Times of the bars count from the acceptance of the run. Pure. */
export function barsOf(run: Timed, steps: readonly RunStep[], now: number): Bar[] {
  const { createdAt, startedAt, endedAt, status } = run;
  const accepted = Date.parse(createdAt);
  const end = Math.max(0, (endedAt === undefined ? now : Date.parse(endedAt)) - accepted);
  const isWaiting = status === 'PENDING' || startedAt === undefined;
  const waited = isWaiting ? end : Math.max(0, Date.parse(startedAt) - accepted);
  const queue: Bar = { name: 'waited for a runner', state: 'waiting', from: 0, to: waited };
  if (isWaiting) return [queue];
  if (steps.length === 0) {
    const state = status === 'FAILED' ? 'failed' : 'running';
    const name = endedAt === undefined ? 'runs' : 'ran';
    return [queue, { name, state, from: waited, to: Math.max(waited, end) }];
  }
  // what the handler throws is the outcome of the run, not of its step
  const isThrown = status === 'FAILED' && steps.every(({ failed }) => !failed);
  const own = steps.map(({ name, startMs, endMs, failed }): Bar => {
    const state = failed || (isThrown && name === 'handler') ? 'failed' : 'running';
    return { name: STEPS[name] ?? name, state, from: waited + startMs, to: waited + endMs };
  });
  return [queue, ...own];
}
