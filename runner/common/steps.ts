/**
 * The steps of a piece of work. A step is a span, for the operator (proto/common/tracing.ts); of an
 * invocation it is also recorded, at any depth of calls, and reported with the outcome.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { STEPS_MAX } from '../../proto/common/limits.ts';
import * as tracing from '../../proto/common/tracing.ts';
import type { CompleteInvocationRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';

type Step = CompleteInvocationRequest['steps'][number];
type Recording = { begunAt: number; steps: Step[] };

const current = new AsyncLocalStorage<Recording>();

/** Runs the work; `taken` returns the steps that have ended, in the order of their starts. */
export function recordSteps<T>(work: (taken: () => Step[]) => Promise<T>): Promise<T> {
  const recording: Recording = { begunAt: performance.now(), steps: [] };
  const taken = () => recording.steps.toSorted((a, b) => a.startMs - b.startMs);
  return current.run(recording, () => work(taken));
}

/** Runs a step of the current work. */
export async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  const recording = current.getStore();
  if (recording === undefined) return tracing.step(name, run);
  const { begunAt, steps } = recording;
  const startMs = performance.now() - begunAt;
  let failed = true;
  try {
    const value = await tracing.step(name, run);
    failed = false;
    return value;
  } finally {
    const endMs = performance.now() - begunAt;
    if (steps.length < STEPS_MAX) steps.push({ name, startMs, endMs, failed });
  }
}

/** Wraps a function so that its steps are those of the current work, whenever it is called. */
export function kept<A extends unknown[], T>(run: (...given: A) => T): (...given: A) => T {
  return current.getStore() === undefined ? tracing.kept(run) : AsyncLocalStorage.bind(run);
}
