/**
 * The runs of `tabern dev` for its page: in memory, the newest ones only. RUNNING -> COMPLETED or
 * FAILED, once. A run has what a run of the service shows: params, result or cause, steps, lines.
 */
import { randomUUID } from 'node:crypto';

/** Ours: what a developer looks back at. */
const RUNS_MAX = 50;
/** Of one run. Ours: a handler may print endlessly. */
const LINES_MAX = 2_000;
const LINE_MAX_CHARS = 8_000;
/** Of one result. Ours: the page shows it as a tree. */
const RESULT_MAX_CHARS = 1 << 20;

/** A handler's failure, with the members that the published local server sends. */
type DevFailure = { message: string; type: string; stackTrace: string[] };
/** JSON of the result; undefined when there is none. */
export type DevOutcome = { json: string | undefined } | { failure: DevFailure };

export type DevLine = { message: string; timestamp: number; level: string };
export type DevStep = { name: string; startMs: number; endMs: number; failed: boolean };
/** Times are ISO 8601, as in the interface of the service. */
export type DevRun = {
  id: string;
  functionName: string;
  status: 'RUNNING' | 'COMPLETED' | 'FAILED';
  createdAt: string;
  endedAt?: string;
  params: object;
  results?: unknown;
  /** The result is too long for the page. */
  isResultLeftOut?: true;
  cause?: { code: string; name: string; message: string; stack: string };
  steps: DevStep[];
  logs: DevLine[];
  /** Lines that are not kept. */
  logsLeftOut: number;
};

export type DevRecord = {
  id: string;
  add(lines: readonly { message: string; timestamp: number; level?: string }[]): void;
  end(outcome: DevOutcome, steps: readonly DevStep[]): void;
};

export type DevRuns = {
  begin(functionName: string, params: object): DevRecord;
  get(id: string): DevRun | undefined;
  /** Newest first, without what is long. */
  list(): Pick<DevRun, 'id' | 'functionName' | 'status' | 'createdAt' | 'endedAt'>[];
};

export function openDevRuns(now: () => number): DevRuns {
  const runs = new Map<string, DevRun>();
  const time = () => new Date(now()).toISOString();
  return {
    begin(functionName, params) {
      const kept = { steps: [], logs: [], logsLeftOut: 0 };
      const id = randomUUID();
      const run: DevRun = {
        id,
        functionName,
        status: 'RUNNING',
        createdAt: time(),
        params,
        ...kept,
      };
      runs.set(id, run);
      const [oldest] = runs.keys();
      if (runs.size > RUNS_MAX && oldest !== undefined) runs.delete(oldest);
      return {
        id,
        add: (lines) => addLines(run, lines),
        end(outcome, steps) {
          run.endedAt = time();
          run.steps = [...steps];
          endWith(run, outcome);
        },
      };
    },
    get: (id) => runs.get(id),
    list() {
      const rows = [...runs.values()].reverse();
      return rows.map(({ id, functionName, status, createdAt, endedAt }) => {
        return { id, functionName, status, createdAt, ...(endedAt !== undefined && { endedAt }) };
      });
    },
  };
}

function addLines(run: DevRun, lines: Parameters<DevRecord['add']>[0]): void {
  for (const { message, timestamp, level = 'info' } of lines) {
    if (run.logs.length >= LINES_MAX) run.logsLeftOut += 1;
    else run.logs.push({ message: message.slice(0, LINE_MAX_CHARS), timestamp, level });
  }
}

function endWith(run: DevRun, outcome: DevOutcome): void {
  if ('failure' in outcome) {
    const { type, message, stackTrace } = outcome.failure;
    run.status = 'FAILED';
    const stack = stackTrace.join('\n');
    run.cause = { code: 'WORKLOAD_ERROR', name: type, message, stack };
    return;
  }
  run.status = 'COMPLETED';
  const { json } = outcome;
  if (json === undefined) return;
  if (json.length > RESULT_MAX_CHARS) run.isResultLeftOut = true;
  else run.results = JSON.parse(json) as unknown;
}
