/** What the runs of the last 24 hours say about each function of a project. */
import { LRUCache } from 'lru-cache';
import type { FunctionRunRow } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';

export type FunctionFigures = {
  /** Runs in each of the 24 hours, the oldest first. */
  hours: number[];
  ended: number;
  failed: number;
  p50Ms: number | undefined;
  p95Ms: number | undefined;
};
export type ProjectFigures = {
  byFunction: ReadonlyMap<string, FunctionFigures>;
  counted: number;
  /** When the oldest counted run was accepted; undefined when all were counted. */
  countedFrom: number | undefined;
};

const HOUR_MS = 3_600_000;
export const HOURS = 24;
/** Rows of one operation. Ours: a few milliseconds of the database thread. */
const BATCH = 2_000;
/** Source: console.proto. */
const COUNTED_MAX = 10_000;
/** Ours: many consoles of a project cost one count. */
const KEPT_MS = 5_000;
const PROJECTS_MAX = 1_000;

type Kept = { at: number; figures: Promise<ProjectFigures> };
type Options = { store: Pick<Store, 'consoleFunctionRuns'>; now: () => number };

/** Counts a project's runs; a count is kept for a few seconds. */
export function functionFigures({
  store,
  now,
}: Options): (projectId: string) => Promise<ProjectFigures> {
  const kept = new LRUCache<string, Kept>({ max: PROJECTS_MAX });
  return (projectId) => {
    const at = now();
    const known = kept.get(projectId);
    if (known !== undefined && at - known.at < KEPT_MS && at >= known.at) return known.figures;
    const figures = count(store, projectId, at);
    kept.set(projectId, { at, figures });
    figures.catch(() => kept.delete(projectId)); // its caller has the error
    return figures;
  };
}

async function count(
  store: Options['store'],
  projectId: string,
  at: number,
): Promise<ProjectFigures> {
  const from = at - HOURS * HOUR_MS;
  const runs: FunctionRunRow[] = [];
  let before = { at: Number.MAX_SAFE_INTEGER, id: '' };
  let isCut = true;
  while (runs.length < COUNTED_MAX) {
    const found = await store.consoleFunctionRuns({ projectId, from, before, max: BATCH });
    runs.push(...found);
    const last = found.at(-1);
    isCut = last !== undefined && found.length === BATCH;
    if (last === undefined || !isCut) break;
    before = { at: last.createdAt, id: last.id };
  }
  const byFunction = Map.groupBy(runs, ({ functionId }) => functionId);
  return {
    byFunction: new Map([...byFunction].map(([id, own]) => [id, figuresOf(own, from)])),
    counted: runs.length,
    countedFrom: isCut ? runs.at(-1)?.createdAt : undefined,
  };
}

/** Of the runs of one function. Pure. */
export function figuresOf(runs: readonly FunctionRunRow[], from: number): FunctionFigures {
  const hours = Array.from({ length: HOURS }, () => 0);
  const lengths: number[] = [];
  let [ended, failed] = [0, 0];
  for (const { status, createdAt, startedAt, endedAt } of runs) {
    const hour = Math.min(HOURS - 1, Math.max(0, Math.floor((createdAt - from) / HOUR_MS)));
    hours[hour] = (hours[hour] ?? 0) + 1;
    if (endedAt === null) continue;
    ended += 1;
    if (status === 'FAILED') failed += 1;
    if (startedAt !== null) lengths.push(Math.max(0, endedAt - startedAt));
  }
  lengths.sort((a, b) => a - b);
  return { hours, ended, failed, p50Ms: rank(lengths, 0.5), p95Ms: rank(lengths, 0.95) };
}

/** The nearest rank; undefined without a value. */
function rank(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
}
