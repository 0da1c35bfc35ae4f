/**
 * A uvu that counts. It replaces uvu in every file that test/run.ts runs, with the same interface,
 * except that hooks are refused: uvu passes a suite whose hook throws, and `await using` does their
 * work visibly.
 */
import { inspect } from 'node:util';
import * as uvu from 'uvu';
import { namedIn, skipOf } from './skips.ts';

/**
 * The outcomes of the tests of one file. Each of `problems` fails the file, even when all tests
 * passed.
 */
export type Outcomes = {
  passed: number;
  failed: number;
  problems: string[];
  tests: { name: string; tookMs: number }[];
  /** By skips.ts. */
  skipped: { name: string; reason: string }[];
};

/**
 * What strict.ts writes: the outcomes, whether the file is larger in a whole run, and the CPU time
 * of its processes.
 */
export type Report = Outcomes & { isSized: boolean; cpuMs: number };

/** Ends a file with the report of what has run until then. */
export const STOP = 'SIGUSR2';

/** Ours: the whole error is in the output of the file. */
const LINE_MAX_CHARS = 300;

type TestState = 'not run' | 'started' | 'passed' | 'failed' | 'skipped';
type TestRecord = {
  name: string;
  state: TestState;
  tookMs: number;
  reason?: string;
  /** The beginning of its error, as one line. */
  error?: string;
};
type SuiteRecord = { name: string; runs: number; tests: TestRecord[]; left: string[] };

const suites: SuiteRecord[] = [];

/** uvu's `suite`, counted. */
export function suite<T = Record<string, unknown>>(name = '', context?: T): uvu.Test<T> {
  return counted(uvu.suite<T>(name, context), name);
}

/** uvu's nameless suite, counted. */
export const test = counted(uvu.suite(), '');

/** uvu's runner, for files that import it. */
export const exec = uvu.exec;

/** The outcomes of all tests registered until now. */
export function report(): Outcomes {
  const used = suites.filter(({ name, runs, tests }) => name || runs > 0 || tests.length > 0);
  const all = used.flatMap((one) => one.tests);
  const tests = all.filter(({ state }) => state !== 'skipped');
  const passed = tests.filter(({ state }) => state === 'passed').length;
  const problems = used.flatMap(problemsOf);
  if (used.every(({ runs }) => runs === 0)) problems.push('no suite was queued: call .run()');
  return {
    passed,
    failed: tests.length - passed,
    problems,
    tests: tests.map(({ name, tookMs }) => ({ name, tookMs })),
    skipped: all.flatMap(({ name, reason }) => (reason === undefined ? [] : [{ name, reason }])),
  };
}

function problemsOf({ name, runs, tests, left }: SuiteRecord): string[] {
  const title = name ? `suite "${name}"` : 'the nameless suite';
  if (runs === 0) return [`${title} was never queued: call .run()`];
  if (tests.length === 0 && left.length === 0) return [`${title} has no tests`];
  const unknown = namedIn(name).filter((one) => tests.every((test) => test.name !== one));
  const idle = tests.filter(({ state }) => state === 'not run' || state === 'started');
  const red = tests.filter(({ state }) => state === 'failed');
  return [
    ...left.map((test) => `${title}: "${test}" is skipped: fix or remove it`),
    ...unknown.map((one) => `${title}: has no test "${one}", which skips.ts names`),
    ...idle.map((test) => `${title}: "${test.name}" ${test.state}, and never ended`),
    ...red.map((test) => `${title}: "${test.name}": ${test.error}`),
  ];
}

function counted<T>(inner: uvu.Test<T>, name: string): uvu.Test<T> {
  const record: SuiteRecord = { name, runs: 0, tests: [], left: [] };
  suites.push(record);
  const follow = (title: string, handler: uvu.Callback<T>): uvu.Callback<T> => {
    const reason = skipOf(name, title);
    if (reason !== undefined) {
      record.tests.push({ name: title, state: 'skipped', tookMs: 0, reason });
      return () => {};
    }
    const test: TestRecord = { name: title, state: 'not run', tookMs: 0 };
    record.tests.push(test);
    return (context) => followed(test, async () => handler(context));
  };
  const outer = (title: string, handler: uvu.Callback<T>) => inner(title, follow(title, handler));
  return Object.assign(outer, {
    only: (title: string, handler: uvu.Callback<T>) => inner.only(title, follow(title, handler)),
    skip: (title = 'a nameless test') => {
      record.left.push(title);
      inner.skip();
    },
    before: refusedHook('before'),
    after: refusedHook('after'),
    run: () => {
      record.runs += 1;
      inner.run();
    },
  });
}

/** A test passes only when its handler returns. */
async function followed(test: TestRecord, handler: () => Promise<void>): Promise<void> {
  test.state = 'started';
  const startedAt = performance.now();
  try {
    await handler();
    test.state = 'passed';
  } catch (error) {
    test.state = 'failed';
    test.error = lineOf(error);
    throw shown(error);
  } finally {
    test.tookMs = performance.now() - startedAt;
  }
}

function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message : inspect(error);
  return text.replace(/\s+/g, ' ').slice(0, LINE_MAX_CHARS);
}

/**
 * uvu crashes on a value that is not an Error, and prints neither a cause nor the two halves of a
 * SuppressedError.
 */
function shown(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`threw ${inspect(error)}`);
  const parts = halvesOf(error);
  const hasMore = parts.length > 1 || error instanceof AggregateError || error.cause !== undefined;
  if (hasMore) for (const part of parts) console.error(inspect(part));
  return error;
}

/** Node's inspect shows neither half. */
function halvesOf(error: unknown): unknown[] {
  if (!(error instanceof SuppressedError)) return [error];
  return [...halvesOf(error.error), ...halvesOf(error.suppressed)];
}

function refusedHook(name: string) {
  const refuse = () => {
    throw new Error(`no hooks: ${name} is green in uvu when it throws; use \`await using\``);
  };
  return Object.assign(refuse, { each: refuse });
}
